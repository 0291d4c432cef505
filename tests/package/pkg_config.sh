#!/usr/bin/env bash
# A C compiler, pkg-config and nothing else: with the shared library, and as one static program.
source "$(dirname "$0")/common.sh"
need pkg-config pkg-config

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name dragoman.pc)")
export PKG_CONFIG_PATH
pkg-config --exists --print-errors 'dragoman >= 0.1' || fail "pkg-config does not find version 0.1"
equal "version" "$(pkg-config --modversion dragoman)" "$("$prefix/bin/dragoman" --version | cut -d' ' -f2)"
compile=("${CC:-cc}" -std=c11 "${strict[@]}" "$source_dir/docs/example.c")
read -ra shared <<< "$(pkg-config --cflags --libs dragoman)"
read -ra static <<< "$(pkg-config --cflags --libs --static dragoman)"
libdir=$(pkg-config --variable=libdir dragoman)

mkdir -p "$work/pkg-config"
"${compile[@]}" "${shared[@]}" -o "$work/pkg-config/shared"
equal "shared" "$(LD_LIBRARY_PATH=$libdir "$work/pkg-config/shared" "$model" "$english")" "$german"
if "$work/pkg-config/shared" "$model" "$english" 2> /dev/null; then fail "it runs without the shared library"; fi

"${compile[@]}" -static "${static[@]}" -o "$work/pkg-config/static"
equal "static" "$("$work/pkg-config/static" "$model" "$english")" "$german"
