#!/bin/bash
# with-libraries.sh [--root ROOT] DIR PROGRAM...: copies programs of this machine, or of packages that are unpacked in ROOT, for whatever architecture, and the
# libraries that they load, to DIR, which becomes the root of an image FROM scratch: the programs are in DIR/bin. Of ROOT it prints the path of each file.
set -euo pipefail
from=
[ "${1:-}" != --root ] || { from=$2; shift 2; }
[ $# -ge 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
root=$1
shift

die() {
  echo "error: $*" >&2
  exit 1
}

# found NAME DIRECTORY...: the path of the file in the first of these directories of ROOT that has it.
found() {
  local dir
  for dir in "${@:2}"; do
    [ ! -f "$from/$dir/$1" ] || { echo "$dir/$1"; return; }
  done
  die "there is no $1${from:+ in $from}: make deps"
}

# directories FILE: where the loader finds libraries without a list, and those of Ceph, which its programs name.
directories() {
  local machine
  machine=$(readelf --file-header "$1" | sed -n 's/.*Machine:.* //p') # "Advanced Micro Devices X86-64", AArch64
  machine=${machine,,}
  echo {usr/lib,lib}/"${machine/-/_}-linux-gnu"{,/ceph}
}

# copy PATH TO DIRECTORY...: a file, and the libraries that it names. The loader is one of these to libc only.
copy() {
  local name path
  [ ! -e "$root/$2" ] || return 0
  install -D -m 0755 "$from/$1" "$root/$2"
  [ -z "$from" ] || echo "$1"
  for name in $(readelf --dynamic --wide "$from/$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'); do
    [[ $name != ld-linux* ]] || continue
    path=$(found "$name" "${@:3}")
    copy "$path" "$path" "${@:3}"
  done
}

for program in "$@"; do
  path=$(found "$program" usr/bin bin usr/sbin sbin)
  rm -f "$root/bin/$program" # of busybox
  read -ra directories < <(directories "$from/$path")
  # The kernel finds the loader where the program says.
  loader=$(readelf --program-headers --wide "$from/$path" | sed -n 's/.*interpreter: \(.*\)\]$/\1/p')
  copy "$path" "bin/$program" "${directories[@]}"
  [ -z "$loader" ] || copy "$(found "${loader##*/}" "${directories[@]}")" "${loader#/}"
done
