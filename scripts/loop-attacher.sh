#!/bin/bash
# Makes disks of the files that scripts/loop-provisioner.sh creates, on each node: the DaemonSet of deploy/examples/loop.yaml runs it, or systemd. It is
# privileged, since Kubernetes gives a loop device to no other container, and so it has no token, no network to listen on and no text of a user.
# /run is empty after a reboot, so the path of a volume leads to its own disk or to none, never to the disk of another volume.
set -euo pipefail
own=${FLEX_BASE_DIR:?}/.loop disks=/run/flex-loop
mkdir -p "$own" "$disks"
declare -A disk=() # of the volumes: a loop device without /dev/

# detach detaches the disks whose files were removed; one that is in use is detached when it is closed. Another of these programs, or
# the kernel by itself, may have detached it before: what is left of a link could lead to the disk of another volume.
detach() {
  local at of
  for at in "$disks"/*; do
    if [[ -L $at && ! -e $own/${at##*/}.img ]]; then rm -f "$at"; fi
  done
  for at in /sys/block/loop*; do
    { read -r of <"$at/loop/backing_file"; } 2>/dev/null || continue
    [[ $of =~ /(pvc-[0-9a-f-]{36})\.img' (deleted)'$ ]] || continue
    rm -f "$disks/${BASH_REMATCH[1]}" # before the disk can be another volume's
    losetup --detach "/dev/${at##*/}" || true
  done
}

# attach NAME BYTES gives the file of a volume a disk of its size. The usual case starts no process.
attach() {
  local of='' sectors=0 at=/sys/block/${disk[$1]:-none} device
  { read -r of <"$at/loop/backing_file" && read -r sectors <"$at/size"; } 2>/dev/null || true
  [[ $of != */"$1".img || $((sectors * 512)) != "$2" || ! $disks/$1 -ef /dev/${disk[$1]} ]] || return 0
  device=$(losetup --nooverlap --find --show "$own/$1.img") || return 0 # one that is attached already; else it is tried again
  losetup --set-capacity "$device" || return 0
  ln -sfn "$device" "$disks/$1"
  disk[$1]=${device##*/}
}

trap 'exit 0' TERM # the disks stay
while true; do
  detach
  while read -r bytes file; do
    name=${file##*/}
    [ -z "$file" ] || attach "${name%.img}" "$bytes"
  done <<<"$(stat -c '%s %n' "$own"/pvc-*.img 2>/dev/null)"
  sleep 1
done
