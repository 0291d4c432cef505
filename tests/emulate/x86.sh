#!/usr/bin/env bash
# Runs every x86 table where it is at home: SSE4.1 and portable under qemu-user as old CPUs, AVX-512 and VNNI in Bochs.
# Kernel tests, the self-test of the shipped model, and three lines whose translation must be this machine's own, byte for
# byte; and that the dispatch never picks what a CPU or its operating system lacks. Ends with a table of what ran where.
set -euo pipefail
cd "$(dirname "$0")/../.."
source ./.ci/lib.sh

need_packages cmake:cmake ninja:ninja-build x86_64-linux-gnu-g++:g++ /usr/include/doctest/doctest.h:doctest-dev \
  /usr/include/xsimd/xsimd.hpp:libxsimd-dev qemu-x86_64:qemu-user bochs:bochs xorriso:xorriso cpio:cpio \
  /usr/share/bochs/BIOS-bochs-latest:bochsbios /usr/lib/ISOLINUX/isolinux.bin:isolinux \
  /usr/lib/syslinux/modules/bios/ldlinux.c32:syslinux-common

work=build/emulate/x86
bin=$work/build
model=models/en-de.dgm
divisor=20 # the random cases of the kernel tests, one in so many: they are there to find what one instruction set does
results=() failures=0

# row TABLE CPU WHAT COMMAND...: one line of the table at the end; the command says whether it is good.
row() {
  local verdict=ok
  "${@:4}" || { verdict=FAILED failures=$((failures + 1)); }
  results+=("$(printf '%-11s %-28s %-34s %s' "$1" "$2" "$3" "$verdict")")
}

# rows_of_tests CPU LOG STATUS: the kernel tests name the tables they ran.
rows_of_tests() {
  local table tables count
  tables=$(sed -n 's/^tables: //p' "$2" || true)
  count=$(grep -oE 'test cases: +[0-9]+' "$2" | grep -oE '[0-9]+' || true)
  for table in ${tables:-?}; do
    row "$table" "$1" "kernel tests, ${count:-no} cases" [ "$3" -eq 0 ]
  done
}

# A program that did not run left no status: that is not good either.
status_of() { cat "$1.status" 2> /dev/null || echo 999; }
chose() { grep -q "^chosen *$1:" "$2"; }
passed() { [ "$(status_of "$1")" -eq 0 ]; }
same() { passed "$1" && cmp -s "$1.out" "$work/native.out"; }
refused() { [ "$(status_of "$1")" -eq 2 ] && grep -q 'which this machine lacks' "$1.err"; }

# run_in_qemu CPU NAME PROGRAM...: NAME.out and NAME.status, as tests/emulate/bochs leaves them.
run_in_qemu() {
  local status=0
  qemu-x86_64 -cpu "$1" "${@:3}" > "$2.out" || status=$?
  echo $status > "$2.status"
}

# in_qemu CPU TABLE: an old CPU, whose best table is TABLE.
in_qemu() {
  local out=$work/$1 where="qemu-x86_64 $1"
  mkdir -p "$out"
  run_in_qemu "$1" "$out/cpu" "$bin/dragoman" cpu
  run_in_qemu "$1" "$out/kernels" -E DRAGOMAN_TEST_DIVISOR=$divisor "$bin/dragoman-kernel-tests"
  run_in_qemu "$1" "$out/verify" "$bin/dragoman" verify "$model"
  run_in_qemu "$1" "$out/translate" "$bin/dragoman" translate -m "$model" < "$work/lines"
  row "$2" "$where" 'is chosen' chose "$2" "$out/cpu.out"
  rows_of_tests "$where" "$out/kernels.out" "$(status_of "$out/kernels")"
  row "$2" "$where" 'self-test of the model' passed "$out/verify"
  row "$2" "$where" 'translates as this machine' same "$out/translate"
}

job() { (IFS=$'\t' && echo "$*"); }

# in_bochs CPU NAME [OPTION...] < JOBS: all jobs in one boot.
in_bochs() {
  cat > "$work/$2.jobs"
  tests/emulate/bochs --cpu "$1" --out "$work/$2" --file "$model" --file "$work/lines" "${@:3}" "$work/$2.jobs"
}

jobs_for() { # TABLE...
  local table
  job cpu /dev/null "$bin/dragoman" cpu
  job kernels /dev/null DRAGOMAN_TEST_DIVISOR=$divisor "$bin/dragoman-kernel-tests"
  for table in "$@"; do
    job "translate-$table" /lines "$bin/dragoman" translate -m /en-de.dgm --isa "$table"
  done
}

report_bochs() { # CPU TABLE...
  local table
  row "$2" "bochs $1" 'is chosen' chose "$2" "$work/$1/cpu.out"
  rows_of_tests "bochs $1" "$work/$1/kernels.out" "$(status_of "$work/$1/kernels")"
  for table in "${@:2}"; do
    row "$table" "bochs $1" 'translates as this machine' same "$work/$1/translate-$table"
  done
  row "$2" "bochs $1" 'self-test of the model' passed "$work/$1/verify"
}

say 'Building the static programs'
mkdir -p "$work"
rm -rf "$work"/corei7_* "$work"/no-* "$work"/Nehalem "$work"/core2duo # nothing of an earlier run may count
cmake --preset x86_64-static -B "$bin" -DDRAGOMAN_KERNEL_TESTS=ON -DDRAGOMAN_WERROR=ON
cmake --build "$bin" --target dragoman dragoman-kernel-tests
printf '%s\n' 'Good morning.' 'Where is the nearest station?' 'A man is riding a bicycle down the street.' > "$work/lines"
"$bin/dragoman" translate -m "$model" < "$work/lines" > "$work/native.out"
table=$("$bin/dragoman" cpu | sed -n 's/^chosen *\([a-z0-9]*\):.*/\1/p')
say "This machine's table is $table"

say 'AVX-512 in Bochs'
{
  jobs_for avx512
  job verify /dev/null "$bin/dragoman" verify /en-de.dgm
  job vnni /lines "$bin/dragoman" translate -m /en-de.dgm --isa avx512vnni
} | in_bochs corei7_skylake_x corei7_skylake_x &
{
  jobs_for avx512vnni avx512
  job verify /dev/null "$bin/dragoman" verify /en-de.dgm
} | in_bochs corei7_icelake_u corei7_icelake_u &
wait
report_bochs corei7_icelake_u avx512vnni avx512
report_bochs corei7_skylake_x avx512
row avx512vnni 'bochs corei7_skylake_x' 'is refused when asked for' refused "$work/corei7_skylake_x/vnni"

say 'Old CPUs in qemu-user, and a system without AVX-512 in Bochs'
job cpu /dev/null "$bin/dragoman" cpu | in_bochs corei7_skylake_x no-avx512-in-the-system --without avx512f &
in_qemu Nehalem sse41
in_qemu core2duo portable
wait
row avx2 'bochs, no AVX-512 in the OS' 'is chosen' chose avx2 "$work/no-avx512-in-the-system/cpu.out"

printf '\n%-11s %-28s %s\n' table 'executed on' what
printf '%s\n' "${results[@]}"
printf 'emulated: %d of %d rows good, %d s\n' $((${#results[@]} - failures)) ${#results[@]} $SECONDS
[ $failures -eq 0 ]
