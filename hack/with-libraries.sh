#!/bin/bash
# with-libraries.sh DIR PROGRAM...: copies programs of this machine, and the libraries that they load, to DIR, which becomes the root of an image
# FROM scratch: the programs are in DIR/bin.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
root=$1
shift
mkdir -p "$root/bin"
for program in "$@"; do
  path=$(PATH=$PATH:/usr/sbin:/sbin command -v "$program") || { echo "error: there is no $program: make deps" >&2; exit 1; }
  install -m 0755 "$path" "$root/bin/"
  # A line of ldd is "NAME => PATH (ADDRESS)" or, for the loader, "PATH (ADDRESS)".
  ldd "$path" | sed -nE 's/^\s*(.* => )?(\/\S+) \(.*/\2/p' | while read -r library; do
    [ -e "$root$library" ] || install -D -m 0755 "$library" "$root$library"
  done
done
