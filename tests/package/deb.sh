#!/usr/bin/env bash
# The Debian packages: what is in them, what they depend on, and that the command and the converter run from them.
source "$(dirname "$0")/common.sh"
need dpkg-deb dpkg
need dpkg-shlibdeps dpkg-dev
need file file

debs=$work/deb
rm -rf "$debs"
mkdir -p "$debs"
(cd "$build" && "${CPACK:-cpack}" -G DEB --config CPackConfig.cmake -B "$debs") > "$work/deb.log" 2>&1 ||
  { cat "$work/deb.log"; fail "cpack"; }
version=$("$build/dragoman" --version | cut -d' ' -f2)
architecture=$(dpkg --print-architecture)

# package NAME ARCHITECTURE PATTERN...: it is there, has a licence and says what it is; its files match the patterns, each
# of which matches one at least. Extracts it into $debs/root.
package() {
  local name=$1 deb=$debs/${1}_${version}_$2.deb file pattern used
  [ -e "$deb" ] || fail "there is no $(basename "$deb"), but $(cd "$debs" && echo *.deb)"
  equal "$name" "$(dpkg-deb -f "$deb" Package Version Architecture | cut -d' ' -f2 | tr '\n' ' ')" "$name $version $2 "
  [ "$(dpkg-deb -f "$deb" Description | wc -l)" -ge 3 ] || fail "$name says too little about itself"
  [[ $(dpkg-deb -f "$deb" Description) == 'offline neural translation: '* ]] || fail "$name does not say what it is first"
  [ -n "$(dpkg-deb -f "$deb" Maintainer)" ] || fail "$name names nobody"
  dpkg-deb -x "$deb" "$debs/root"
  local files=() patterns=("usr/share/doc/$name/copyright" "${@:3}")
  mapfile -t files < <(dpkg-deb -c "$deb" | awk '$1 !~ /^d/ { print substr($6, 3) }')
  for file in "${files[@]}"; do
    used=
    for pattern in "${patterns[@]}"; do [[ $file == $pattern ]] && used=yes; done
    [ -n "$used" ] || fail "$name holds $file"
  done
  for pattern in "${patterns[@]}"; do
    used=
    for file in "${files[@]}"; do [[ $file == $pattern ]] && used=yes; done
    [ -n "$used" ] || fail "$name holds no $pattern"
  done
  dpkg-deb -c "$deb" | awk '$2 != "root/root" { exit 1 }' || fail "$name has files of others than root"
}

# depends NAME ARCHITECTURE PATTERN: the libraries the package's programs were linked to, as dpkg-shlibdeps found them.
depends() {
  local found
  found=$(dpkg-deb -f "$debs/${1}_${version}_$2.deb" Depends)
  [[ $found == $3 ]] || fail "$1 depends on '$found', not on '$3'"
  printf '%s depends on %s\n' "$1" "$found"
}

package dragoman "$architecture" usr/bin/dragoman 'usr/lib*/libdragoman.so.1' usr/share/man/man1/dragoman.1.gz \
  usr/share/doc/dragoman/LICENSE usr/share/doc/dragoman/CHANGELOG.md
depends dragoman "$architecture" 'libc6 (>= *)'
equal "shlibs" "$(dpkg-deb -I "$debs/dragoman_${version}_$architecture.deb" shlibs)" "libdragoman 1 dragoman (>= $version)"
package libdragoman-dev "$architecture" 'usr/include/dragoman.h*' 'usr/lib*/libdragoman.a' 'usr/lib*/libdragoman.so' \
  'usr/lib*/pkgconfig/dragoman.pc' 'usr/lib*/cmake/dragoman/*.cmake' usr/share/doc/dragoman/embedding.md \
  'usr/share/doc/dragoman/example.*'
depends libdragoman-dev "$architecture" "dragoman (= $version), libc6-dev"
package dragoman-converter "$architecture" usr/bin/dragoman-convert usr/share/man/man1/dragoman-convert.1.gz
depends dragoman-converter "$architecture" '*libc6 (>= *)*libstdc++6 (>= *)*'
package dragoman-model-en-de all usr/share/dragoman/en-de.dgm usr/share/doc/dragoman/models.md
depends dragoman-model-en-de all ''
grep -q 'CC-BY 2.0 FR' "$debs/root/usr/share/doc/dragoman-model-en-de/copyright" || fail "the model's licence is not there"
equal "packages" "$(cd "$debs" && echo *.deb | wc -w)" 4

equal "the packed command" "$("$debs/root/usr/bin/dragoman" translate "$english")" "$german"
equal "the packed converter" "$("$debs/root/usr/bin/dragoman-convert" --version)" "dragoman-convert $version"
du -b "$debs"/*.deb | sed "s|$debs/||"
