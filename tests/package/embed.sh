#!/usr/bin/env bash
# A project in C that takes the sources in with add_subdirectory: only the portable kernels, so that it needs no other
# library's headers, and as a unity build, so that it takes seconds. embed/CMakeLists.txt looks at what the sources leave
# behind; here, what of their flags reaches the host's own files.
source "$(dirname "$0")/common.sh"

configure "$(dirname "$0")/embed" -DCMAKE_BUILD_TYPE=Debug -DDRAGOMAN_ISA_OPTIMISE=-O0 -DCMAKE_UNITY_BUILD=ON \
  -DDRAGOMAN="$source_dir" -DEXAMPLE="$source_dir/docs/example.c" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  > "$work/embed.log" 2>&1 || { cat "$work/embed.log"; fail "it cannot be configured"; }
"$cmake" --build "$work/embed" --target host --parallel 2 > "$work/embed-build.log" 2>&1 || { cat "$work/embed-build.log"; fail "it cannot be built"; }
if grep -h 'warning' -i "$work/embed.log" "$work/embed-build.log"; then fail "warnings"; fi
equal "embedded" "$("$work/embed/host" "$model" "$english")" "$german"

cd "$work/embed"
command=$(grep -E '"command": .*CMakeFiles/host\.dir/' compile_commands.json)
flags=$(tr ' ' '\n' <<< "$command" | grep -E '^-(D|W|f|m|I|isystem)' | tr '\n' ' ')
equal "the host's flags" "$flags" "-I$work/embed/dragoman/include -Wall -Wextra -Wpedantic -Werror "
equal "installed by the host" "$("$cmake" --install . --prefix "$work/embed/prefix" | grep -c Installing || true)" 0
if grep -i xsimd CMakeCache.txt; then fail "it looked for xsimd"; fi
if ls dragoman/dragoman* 2> /dev/null | grep -v '\.cmake$\|\.map$'; then fail "programs were built"; fi
