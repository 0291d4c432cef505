# Sourced by the scripts here. ctest sets DRAGOMAN_SOURCE and DRAGOMAN_BUILD; by hand they are this tree and build/dev.
set -euo pipefail
source_dir=${DRAGOMAN_SOURCE:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${DRAGOMAN_BUILD:-$source_dir/build/dev}
work=$build/package-tests
prefix=$work/prefix
model=$source_dir/models/en-de.dgm
cmake=${CMAKE:-cmake}
strict=(-Wall -Wextra -Wpedantic -Werror)
mkdir -p "$work"
unset DRAGOMAN_MODEL DRAGOMAN_ISA LD_LIBRARY_PATH PKG_CONFIG_PATH CFLAGS CXXFLAGS LDFLAGS

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# need COMMAND PACKAGE: a test that cannot run says so; ./check counts these lines.
need() {
  command -v "$1" > /dev/null || {
    printf 'skipped: %s is not installed (apt-get install %s)\n' "$1" "$2"
    exit 0
  }
}

# equal WHAT GOT WANT
equal() {
  [ "$2" = "$3" ] || fail "$1: got '$2', not '$3'"
  printf '%s: %s\n' "$1" "$2"
}

# What every program here must make of it; `dragoman` itself is compared to the same words.
english='A man is riding a bicycle.'
german='Ein Mann fährt Fahrrad.'

# configure SOURCE [OPTION...]: a foreign project, afresh, in $work under its folder's name.
configure() {
  rm -rf "${work:?}/$(basename "$1")"
  "$cmake" -G "${GENERATOR:-Ninja}" -S "$1" -B "$work/$(basename "$1")" "${@:2}"
}
