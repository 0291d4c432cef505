#!/usr/bin/env bash
# `cmake --install` puts everything in its place, and the installed command finds the installed model by itself.
source "$(dirname "$0")/common.sh"

rm -rf "$prefix"
"$cmake" --install "$build" --prefix "$prefix" > /dev/null
lib=$(dirname "$(cd "$prefix" && find . -name libdragoman.a)")
for file in bin/dragoman bin/dragoman-convert include/dragoman.h include/dragoman.hpp "$lib/libdragoman.so" \
  "$lib/libdragoman.so.1" "$lib/pkgconfig/dragoman.pc" "$lib/cmake/dragoman/dragoman-config.cmake" \
  "$lib/cmake/dragoman/dragoman-config-version.cmake" share/man/man1/dragoman.1 share/man/man1/dragoman-convert.1 \
  share/doc/dragoman/LICENSE share/doc/dragoman/models.md share/doc/dragoman/example.c share/dragoman/en-de.dgm; do
  [ -s "$prefix/$file" ] || fail "$file is not installed"
done
for file in $(cd "$prefix" && find include -type f); do # the public ones alone
  case $file in include/dragoman.h | include/dragoman.hpp) ;; *) fail "$file is installed" ;; esac
done
# Nothing that is installed may remember where it was built.
if grep -rlI -e "$build" -e "$source_dir" "$prefix"; then fail "these files name a folder of the build"; fi
equal "the installed command" "$("$prefix/bin/dragoman" translate "$english")" "$german"

# Each component can be had alone.
rm -rf "$work/alone"
"$cmake" --install "$build" --prefix "$work/alone" --component model > /dev/null
equal "the model alone" "$(cd "$work/alone" && find . -type f | sort | tr '\n' ' ')" \
  "./share/doc/dragoman/models.md ./share/dragoman/en-de.dgm "
