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
share=20 # the random cases of the kernel tests, one in so many: they are there to find what one instruction set does
results=() failures=0

# row TABLE CPU WHAT COMMAND...: one line of the table at the end; the command says whether it is good.
row() {
  local verdict=ok
  "${@:4}" || { verdict=FAILED failures=$((failures + 1)); }
  results+=("$(printf '%-11s %-28s %-34s %s' "$1" "$2" "$3" "$verdict")")
}

# rows_of_tests CPU LOG STATUS: the kernel tests name the tables they ran.
rows_of_tests() {
  local table
  for table in $(sed -n 's/^tables: //p' "$2"); do
    row "$table" "$1" "$(grep -oE 'test cases: +[0-9]+' "$2" | tr -s ' ') of the kernels" [ "$3" -eq 0 ]
  done
  grep -q '^tables: ' "$2" || row '?' "$1" 'kernel tests' false
}

chose() { grep -q "^chosen *$1:" "$2"; }
passed() { [ "$(cat "$1.status")" -eq 0 ]; }
same() { passed "$1" && cmp -s "$1.out" "$work/native.out"; }
refused() { [ "$(cat "$1.status")" -eq 2 ] && grep -q 'which this machine lacks' "$1.err"; }

# in_qemu CPU TABLE: an old CPU, whose best table is TABLE.
in_qemu() {
  local out=$work/$1 status
  run() { qemu-x86_64 -cpu "$cpu" "$@" 2> >(grep -v 'TCG doesn.t support' >&2); }
  local cpu=$1
  run "$bin/dragoman" cpu > "$out.cpu"
  row "$2" "qemu-x86_64 $1" 'is chosen' chose "$2" "$out.cpu"
  status=0
  DRAGOMAN_TEST_SHARE=$share run "$bin/dragoman-kernel-tests" > "$out.kernels" || status=$?
  rows_of_tests "qemu-x86_64 $1" "$out.kernels" "$status"
  row "$2" "qemu-x86_64 $1" 'self-test of the model' run "$bin/dragoman" verify "$model"
  status=0
  run "$bin/dragoman" translate -m "$model" < "$work/lines" > "$out.out" || status=$?
  echo $status > "$out.status"
  row "$2" "qemu-x86_64 $1" 'translates as this machine' same "$out"
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
  job kernels /dev/null DRAGOMAN_TEST_SHARE=$share "$bin/dragoman-kernel-tests"
  for table in "$@"; do
    job "translate-$table" /lines "$bin/dragoman" translate -m /en-de.dgm --isa "$table"
  done
}

report_bochs() { # CPU TABLE...
  local table
  row "$2" "bochs $1" 'is chosen' chose "$2" "$work/$1/cpu.out"
  rows_of_tests "bochs $1" "$work/$1/kernels.out" "$(cat "$work/$1/kernels.status")"
  for table in "${@:2}"; do
    row "$table" "bochs $1" 'translates as this machine' same "$work/$1/translate-$table"
  done
  row "$2" "bochs $1" 'self-test of the model' passed "$work/$1/verify"
}

say 'Building the static programs'
mkdir -p "$work"
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
job cpu /dev/null "$bin/dragoman" cpu | in_bochs corei7_skylake_x no-avx512-in-the-system --without avx512f

report_bochs corei7_icelake_u avx512vnni avx512
report_bochs corei7_skylake_x avx512
row avx512vnni 'bochs corei7_skylake_x' 'is refused when asked for' refused "$work/corei7_skylake_x/vnni"
row avx2 'bochs, no AVX-512 in the OS' 'is chosen' chose avx2 "$work/no-avx512-in-the-system/cpu.out"

say 'Old CPUs in qemu-user'
in_qemu Nehalem sse41
in_qemu core2duo portable

printf '\n%-11s %-28s %s\n' table 'executed on' what
printf '%s\n' "${results[@]}"
printf 'lines: %d of %d rows good, %d s\n' $((${#results[@]} - failures)) ${#results[@]} $SECONDS
[ $failures -eq 0 ]
