#!/bin/bash
# Makes disks of the files that scripts/loop-provisioner.sh creates, on each node: the DaemonSet of deploy/examples/loop.yaml runs it, or systemd. It is
# privileged, since Kubernetes gives a loop device to no other container, and so it has no token, no network to listen on and no text of a user.
# /run is empty after a reboot, so the path of a volume leads to its own disk or to none, never to the disk of another volume.
set -euo pipefail
own=${FLEX_BASE_DIR:?}/.loop disks=/run/flex-loop
mkdir -p "$own" "$disks"
declare -A disk=() top=() # of a volume its loop device, of a loop device the one on top of it; without /dev/

# hold DEVICE lets the kernel have the disk open, by a second loop device on top of it that no pod
# gets. A pod may tell the kernel to detach its raw device when nothing else has it open
# (LOOP_CLR_FD needs no capability). The device may then become the disk of another volume, or of
# the kubelet, while the path still leads there. What this program has open is open only until it
# ends, and a pod may wait for that.
hold() { [ -n "${top[${1##*/}]:-}" ] || losetup --read-only --sizelimit 512 --find "$1"; }

is_of() { # NAME DEVICE: it is the disk of the volume
  local of=''
  { read -r of <"/sys/block/${2##*/}/loop/backing_file"; } 2>/dev/null || true
  [[ $of = */"$1".img ]]
}

# detach detaches the disks whose files were removed; one that is in use is detached when it is
# closed. Another of these programs may have detached it before: what is left of a link could lead
# to the disk of another volume.
detach() {
  local at of removed=()
  for at in "$disks"/*; do
    if [[ -L $at && ! -e $own/${at##*/}.img ]]; then rm -f "$at"; fi
  done
  top=()
  for at in /sys/block/loop*; do
    { read -r of <"$at/loop/backing_file"; } 2>/dev/null || continue
    [[ ! $of =~ /(loop[0-9]+)$ ]] || top[${BASH_REMATCH[1]}]=${at##*/}
    [[ ! $of =~ /(pvc-[0-9a-f-]{36})\.img' (deleted)'$ ]] || removed+=("${at##*/} ${BASH_REMATCH[1]}")
  done
  for at in "${removed[@]}"; do
    rm -f "$disks/${at#* }" # before the disk can be another volume's
    at=${at% *}
    [ -z "${top[$at]:-}" ] || losetup --detach "/dev/${top[$at]}" || true
    losetup --detach "/dev/$at" || true
  done
}

# attach NAME BYTES gives the file of a volume a disk of its size. The usual case starts no process.
attach() {
  local sectors=0 device=${disk[$1]:-none}
  if is_of "$1" "$device"; then
    { read -r sectors <"/sys/block/$device/size"; } 2>/dev/null || true
    [[ $((sectors * 512)) != "$2" || ! $disks/$1 -ef /dev/$device || -z ${top[$device]:-} ]] || return 0
  else
    rm -f "$disks/$1"
  fi
  device=$(losetup --nooverlap --find --show "$own/$1.img") || return 0 # one that is attached already; else it is tried again
  losetup --set-capacity "$device" && hold "$device" || return 0
  is_of "$1" "$device" || return 0
  ln -sfn "$device" "$disks/$1"
  disk[$1]=${device##*/}
}

trap 'exit 0' TERM # the disks stay, and so does what holds them
while true; do
  detach
  while read -r bytes file; do
    name=${file##*/}
    [ -z "$file" ] || attach "${name%.img}" "$bytes"
  done <<<"$(stat -c '%s %n' "$own"/pvc-*.img 2>/dev/null)"
  sleep 1
done
