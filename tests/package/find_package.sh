#!/usr/bin/env bash
# Foreign CMake projects, one in C and one in C++, that know nothing but find_package(dragoman).
source "$(dirname "$0")/common.sh"
here=$(dirname "$0")

configure "$here/c" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLE="$source_dir/docs/example.c"
"$cmake" --build "$work/c"
equal "C, static" "$("$work/c/app" "$model" "$english")" "$german"
equal "C, shared" "$("$work/c/app-shared" "$model" "$english")" "$german"
if "${READELF:-readelf}" -d "$work/c/app" | grep NEEDED | grep -v 'libc\.so'; then
  fail "a C program needs more than libc"
fi
"${READELF:-readelf}" -d "$work/c/app-shared" | grep -q 'NEEDED.*libdragoman\.so\.1' ||
  fail "libdragoman.so.1 is not among what app-shared needs"

configure "$here/cpp" -DCMAKE_PREFIX_PATH="$prefix" -DEXAMPLE="$source_dir/docs/example.cpp"
"$cmake" --build "$work/cpp"
lines=$(printf '%s\n\n%s\n' "$english" 'Where is the station?')
equal "C++" "$("$work/cpp/app" "$model" <<< "$lines")" "$("$prefix/bin/dragoman" translate <<< "$lines")"
