#!/usr/bin/env bash
# docs/example.py: the shared library through Python's ctypes.
source "$(dirname "$0")/common.sh"
need python3 python3

DRAGOMAN_LIBRARY=$(find "$prefix" -name libdragoman.so)
export DRAGOMAN_LIBRARY
equal "Python" "$(python3 "$source_dir/docs/example.py" "$model" "$english")" "$german"

# More than plan.output_bytes (2,761 at these limits): the buffer grows, and the text is the command's to the letter.
long=$(for _ in $(seq 250); do printf '%s ' "$english"; done)
got=$(python3 "$source_dir/docs/example.py" "$model" "$long")
[ ${#got} -gt 3000 ] || fail "a long text became only ${#got} characters"
[ "$got" = "$("$prefix/bin/dragoman" translate --quiet --max-source 64 "$long")" ] || fail "a long text differs: $got"

if python3 "$source_dir/docs/example.py" /no/such/file.dgm x 2> "$work/python.log"; then fail "a missing file is no error"; fi
grep -q 'no/such/file.dgm cannot be opened' "$work/python.log" || fail "it says $(cat "$work/python.log")"
