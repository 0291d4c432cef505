# What ./try and ./check share: say what is done, install what is missing, build a preset.

say() {
  if [ -t 2 ]; then printf '\033[1m%s\033[0m\n' "$*" >&2; else printf '%s\n' "$*" >&2; fi
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo > /dev/null; then
    sudo "$@"
  else
    printf 'This needs root and there is no sudo. Run as root: %s\n' "$*" >&2
    exit 1
  fi
}

# need_packages WHAT:PACKAGE...: WHAT is a command or a path; installs the packages whose WHAT is missing.
need_packages() {
  local missing=() pair what
  for pair in "$@"; do
    what=${pair%:*}
    command -v "$what" > /dev/null || [ -e "$what" ] || missing+=("${pair##*:}")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if ! command -v apt-get > /dev/null; then
    printf 'Please install these Debian packages or what matches them here: %s\n' "${missing[*]}" >&2
    exit 1
  fi
  say "Installing ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { as_root apt-get update && as_root apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}"; } \
      < /dev/null > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    printf 'apt-get could not install: %s\n' "${missing[*]}" >&2
    exit 1
  fi
  rm -f "$log"
}

# build PRESET [TARGET...]: quiet when all is well, the compiler's words when not.
build() {
  local preset=$1 log
  shift
  log=$(mktemp)
  say "Building ($preset)"
  if ! { cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}; } > "$log" 2>&1; then
    tail -n 60 "$log" >&2
    printf 'The build failed.\n' >&2
    exit 1
  fi
  rm -f "$log"
}
