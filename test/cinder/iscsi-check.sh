#!/bin/bash
# iscsi-check.sh PORTAL[,PORTAL...] IQN LUN USER [PASSWORD_FILE|-]: is this really storage, and does its password protect it?
# An initiator in user space (qemu-io over libiscsi; no kernel module) logs in, writes through the first portal, reads
# back in a new session through each, and is refused with a wrong password and with none by each. One line per fact;
# the exit code is not zero if one of them is false.
# It overwrites what is on the volume. The password (stdin unless a file is named) appears in no argument list.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ $# -ge 4 ] || die "usage: $0 PORTAL[,PORTAL...] IQN LUN USER [PASSWORD_FILE|-]"
portals=${1//,/ } portal=${1%%,*} iqn=$2 lun=$3 user=$4
[ -d "$CINDER_STATE/tmp" ] || die "Cinder is not up (test/cinder/up.sh)"

# /tmp of the chroot.
dir=$(mktemp -d "$CINDER_STATE/tmp/iscsi-check.XXXXXX")
trap 'rm -rf "$dir"' EXIT
umask 077
if [ "${5:--}" = - ]; then cat; else cat "$5"; fi | tr -d '\n' >"$dir/right"
[ -s "$dir/right" ] || die "no password given"
tr '0-9A-Za-z' '1-90B-ZAb-za' <"$dir/right" >"$dir/wrong" # of the same length and alphabet

# session LOGIN QEMU_IO_COMMAND...: one login, with the password in the file LOGIN or with none.
session() {
  local login=$1 image="driver=iscsi,transport=tcp,portal=$portal,target=$iqn,lun=$lun" object=() commands=() command
  shift
  [ "$login" = none ] || {
    object=(--object "secret,id=chap,file=/tmp/${dir##*/}/$login")
    image+=",user=$user,password-secret=chap"
  }
  for command in "$@"; do commands+=(-c "$command"); done
  timeout 60 "${IN_ROOTFS[@]}" qemu-io "${object[@]}" --image-opts "$image" "${commands[@]}" >"$dir/output" 2>&1
}

failed() {
  cat "$dir/output" >&2
  die "$*"
}

refused() {
  ! session "$1" 'read 0 512' || failed "$iqn at $portal can be read with $2"
  grep -qi 'authentication failure' "$dir/output" || failed "$iqn at $portal: another fault than a refusal with $2"
  printf 'ok: %s: %s is refused\n' "$portal" "$2"
}

# Eight places with a byte each: a volume of the wrong size or of another claim does not have them.
writes=() reads=()
for place in 0 1 2 3 5 8 13 1023; do
  byte=$((RANDOM % 255 + 1))
  writes+=("write -P $byte ${place}M 64k")
  reads+=("read -P $byte ${place}M 64k")
  lie="read -P $((byte % 255 + 1)) ${place}M 64k"
done

session right length || failed "$iqn at $portal: no session"
printf 'ok: %s: the disk has %s\n' "$portal" "$(sed -n '1p' "$dir/output")"
session right "${writes[@]}" flush || failed "$iqn at $portal: writing failed"
printf 'ok: %s: %s accepts %s and its password; a random pattern is written\n' "$portal" "$iqn" "$user"
for portal in $portals; do
  session right "${reads[@]}" || failed "$iqn at $portal: what was written is not there"
  printf 'ok: %s: a new session reads the same pattern\n' "$portal"
  ! session right "$lie" || failed "the comparison notices nothing"
  grep -q 'Pattern verification failed' "$dir/output" || failed "$iqn at $portal: reading failed"
  printf 'ok: %s: another pattern would have been noticed\n' "$portal"
  refused wrong "a wrong password"
  refused none "no password"
done
