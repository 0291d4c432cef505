#!/usr/bin/env bash
# libdragoman.so shows the functions of dragoman.h, all of them and nothing else, needs libc alone, and both libraries
# leave nothing of libstdc++ undefined.
source "$(dirname "$0")/common.sh"

library=$(find "$prefix" -name libdragoman.so)
archive=$(find "$prefix" -name libdragoman.a)
declared=$(tr '\n' ' ' < "$prefix/include/dragoman.h" | grep -oE 'DRAGOMAN_API [^;(]*\b(dragoman_[a-z_]+)\(' |
  grep -oE 'dragoman_[a-z_]+\($' | tr -d '(' | sort)
shown=$("${NM:-nm}" -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
[ "$(wc -w <<< "$declared")" -ge 10 ] || fail "only these were found in dragoman.h: $declared"
equal "exported" "$(tr '\n' ' ' <<< "$shown")" "$(tr '\n' ' ' <<< "$declared")"

abi=$(sed -n 's/^#define DRAGOMAN_ABI_VERSION //p' "$prefix/include/dragoman.h")
dynamic=$("${READELF:-readelf}" -d "$library")
grep -q "SONAME.*\[libdragoman\.so\.$abi\]" <<< "$dynamic" || fail "its name does not end in the ABI, $abi"
if grep NEEDED <<< "$dynamic" | grep -v 'libc\.so\|ld-linux'; then fail "it needs more than libc"; fi

# Itanium names that are not ours (_ZN8dragoman, _ZNK8dragoman, templates of them), and the C++ runtime's own.
foreign=$("${NM:-nm}" --undefined-only "$archive" | awk 'NF == 2 { print $2 }' | sort -u |
  grep -E '^(_ZS|_ZNS|_ZNKS|_Zn|_Zd|__cxa|__gxx|_Unwind)' || true)
[ -z "$foreign" ] || fail "libdragoman.a wants libstdc++ for $foreign"
