#!/bin/bash
# programs.sh ROOT ARCH PROGRAM...: copies programs of Debian with their libraries to ROOT, and notes their packages in $WORK/debian. release.sh sets the
# environment, and bash.sh unpacks the packages.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
"$(dirname "$(readlink -f "$0")")/../with-libraries.sh" --root "$WORK/debian-$2" "$1" "${@:3}" | sort -u >"$WORK/copied"
join "$WORK/copied" "$WORK/files-$2" | cut -d' ' -f2- >>"$WORK/debian"
