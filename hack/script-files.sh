#!/bin/bash
# script-files.sh SCRIPT DIR: copies a provisioner in bash, and what it reads, to DIR, which becomes the root of its image. What runs on a box is beside the
# script, and so are its functions.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
name=${1%-provisioner.sh}
mkdir -p "$2"
install -m 0755 "$1" "$2/provision"
[ ! -e "$name-functions.sh" ] || install -m 0644 "$name-functions.sh" "$2/functions"
[ -e "$name-on-box.sh" ] || exit 0
install -m 0644 "$(dirname "$1")/box.sh" "$2/box"
install -m 0644 "$name-on-box.sh" "$2/on-box"
mkdir -p "$2/etc" # ssh asks who runs it
echo "flex:x:65532:65532::/tmp:/bin/bash" >"$2/etc/passwd"
