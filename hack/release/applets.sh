#!/bin/bash
# applets.sh BUSYBOX BIN...: makes a link for each applet of BUSYBOX in each directory BIN that has
# no such program. The applets of all architectures are of one configuration, and a machine can ask
# the busybox of its own.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 64; }
"$1" --list | while read -r applet; do
  for bin in "${@:2}"; do
    [ -e "$bin/$applet" ] || ln -s busybox "$bin/$applet"
  done
done
