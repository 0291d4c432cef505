#!/usr/bin/env bash
# tests/emulate/arm.sh: cross-compiles the static binaries for 64-bit and 32-bit ARM and runs them under qemu-user as
# CPUs with and without each instruction set. There, the right tables are offered and the others refused; the kernel
# tests pass; every kernel has the bits it has on this machine; `verify` agrees; translations equal this machine's to
# the byte, scores included. Ends with a table. About 5 minutes on 2 cores; ./check --all runs it.
#
# Needs g++-aarch64-linux-gnu g++-arm-linux-gnueabihf qemu-user, and builds the preset `dev` for what to compare with.
set -euo pipefail
cd "$(dirname "$0")/../.."

shared=${DRAGOMAN_SHARED:-../shared}
work=build/emulate-arm
export DRAGOMAN_TEST_DIVISOR=${DRAGOMAN_TEST_DIVISOR:-16} # of the random cases: an emulated run takes seconds
rm -rf "$work"
mkdir -p "$work"
: > "$work/failures"

fail() { printf '%s\n' "$*" | tee -a "$work/failures"; }

# translate MODEL TEXT COMMAND [OPTION...]: with scores, which show more of the logits than the text does.
translate() { "${@:3}" --quiet --scores -m "$1" < "$2"; }

# The hash of each kernel, whatever table computed it: one line a kernel if all tables agree.
hashes() { awk '$1 == "hash" { print $3, $4 }' | sort -u; }

# want NAME MODEL TEXT: a comparison to make, and this machine's side of it.
want() {
  cp "$2" "$work/$1.dgm"
  cp "$3" "$work/$1.text"
  translate "$2" "$3" build/dev/dragoman translate > "$work/$1.want"
}

prepare() {
  cmake --preset dev
  cmake --build --preset dev --target dragoman dragoman-convert dragoman-tests
  ctest --preset dev -R '^convert_models$'
  build/dev/dragoman-tests -tc='hashes*' | hashes > "$work/hashes"
  [ "$(wc -l < "$work/hashes")" -ge 10 ] # nothing equals nothing
  local text=tests/emulate/sentences.en models=build/dev/test-models
  if [ -e "$shared/eval/en-de/tatoeba_test.en" ]; then
    text=$work/text
    head -n 50 "$shared/eval/en-de/tatoeba_test.en" > "$text"
  else
    printf 'skipped: the test sets are not here (%s); sentences of our own are translated instead\n' "$shared"
  fi
  head -n 5 "$text" > "$work/few"
  want int8 models/en-de.dgm "$text"
  want tiny-float32 $models/tiny-none.dgm "$work/few"
  if [ -e $models/en-de-none.dgm ]; then
    want float32 $models/en-de-none.dgm "$work/few"
  else
    printf 'skipped: the checkpoint of en-de is not here; float32 is compared on the tiny model alone\n'
  fi
}

# cross_build PRESET TRIPLE: no symbol and no instruction of an instruction set outside the object made for it.
cross_build() {
  local library=build/$1/runtime/libdragoman.a
  cmake --preset "$1" -DDRAGOMAN_KERNEL_TESTS=ON
  cmake --build --preset "$1"
  cmake -DNM="$(command -v "$2-nm")" -DARCHIVE="$library" -P tests/isa_symbols.cmake ||
    fail "$1: a symbol leaves the object of its instruction set"
  cmake -DOBJDUMP="$(command -v "$2-objdump")" -DPROCESSOR="${2%%-*}" \
    -DFILES="$library$(find "build/$1/runtime" -path '*dragoman.dir*.o' -printf ';%p')" \
    -P tests/isa_instructions.cmake || fail "$1: an instruction above the baseline outside of its object"
  if "$2-readelf" -l "build/$1/dragoman" | grep -q INTERP; then fail "build/$1/dragoman is not static"; fi
  if [ "$(stat -c %s "build/$1/dragoman")" -ge 1000000 ]; then fail "build/$1/dragoman has 1 MB or more"; fi
}

# run_cpu PRESET EMULATOR CPU TABLES: everything on one CPU, which must offer exactly these tables, best first.
run_cpu() {
  local preset=$1 cpu=$3 tables=$4 run=("$2" -cpu "$3") offered table name equal status said
  local dragoman=("${run[@]}" "build/$preset/dragoman")
  offered=$("${dragoman[@]}" cpu | awk '/ runs here / { printf "%s ", $1 }')
  [ "$offered" = "$tables " ] || fail "$cpu ($preset) offers '$offered', not '$tables'"
  [ "$("${dragoman[@]}" cpu | awk '$1 == "chosen" { print $2 }')" = "${tables%% *}:" ] ||
    fail "$cpu ($preset) does not choose ${tables%% *}"
  for table in $("${dragoman[@]}" cpu | awk '/ does not run here / { print $1 }'); do
    status=0
    said=$("${dragoman[@]}" translate --isa "$table" -m "$work/int8.dgm" Hello. 2>&1) || status=$?
    [[ $status -eq 2 && $said == *"which this machine lacks"* ]] ||
      fail "$cpu ($preset) does not refuse $table with a sentence: $said"
  done
  "${run[@]}" "build/$preset/dragoman-kernel-tests" > "$work/$preset-$cpu.tests" ||
    fail "$cpu ($preset): kernel tests, see $work/$preset-$cpu.tests"
  hashes < "$work/$preset-$cpu.tests" | cmp - "$work/hashes" || fail "$cpu ($preset): kernels have other bits than here"
  "${dragoman[@]}" verify --all-isas "$work/int8.dgm" || fail "$cpu ($preset): verify"
  local lines=50 # of the table that is chosen; ten of the others, which are chosen on another CPU
  for table in $tables; do
    equal=
    for name in int8 float32 tiny-float32; do
      [ -e "$work/$name.want" ] || continue
      head -n $lines "$work/$name.want" > "$work/$preset-$cpu.want"
      if translate "$work/$name.dgm" <(head -n $lines "$work/$name.text") "${dragoman[@]}" translate --isa "$table" |
        cmp - "$work/$preset-$cpu.want"; then
        equal+="$(wc -l < "$work/$preset-$cpu.want") lines $name, "
      else
        fail "$cpu ($preset), $table: $name does not translate as it does here"
      fi
    done
    printf '%-8s %-11s %-9s %s\n' "$preset" "$cpu" "$table" "${equal%, }" >> "$work/$preset-$cpu.row"
    lines=10
  done
}

# In the background, as many at a time as there are cores.
start() {
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || true; done
  "$@" > "$work/$2-$4.log" 2>&1 &
}

prepare
cross_build aarch64 aarch64-linux-gnu
cross_build armv7 arm-linux-gnueabihf
start run_cpu armv7 qemu-arm max "neon32 portable"
start run_cpu armv7 qemu-arm cortex-a7 "neon32 portable"
start run_cpu armv7 qemu-arm cortex-a9 "portable"
start run_cpu aarch64 qemu-aarch64 max "neoni8mm neondot neon portable"
start run_cpu aarch64 qemu-aarch64 cortex-a76 "neondot neon portable"
start run_cpu aarch64 qemu-aarch64 cortex-a53 "neon portable"
wait

printf '\nstripped static binaries: aarch64 %d bytes, armv7 %d bytes\n' "$(stat -c %s build/aarch64/dragoman)" \
  "$(stat -c %s build/armv7/dragoman)"
[ "$(cat "$work"/*.row | wc -l)" -eq 14 ] || fail "a run ended early: see $work/*.log"
printf '\nbinary   CPU         table     equal to this machine to the byte\n'
cat "$work"/*.row
if [ -s "$work/failures" ]; then
  printf '\nFAILED:\n'
  cat "$work/failures"
  exit 1
fi
printf 'kernel tests, hashes of kernels and verify: the same on all of them\n'
