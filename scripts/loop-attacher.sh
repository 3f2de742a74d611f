#!/bin/bash
# Makes disks of the files that scripts/loop-provisioner.sh creates, on each node: the DaemonSet of deploy/examples/loop.yaml runs it, or systemd. It is
# privileged, since Kubernetes gives a loop device to no other container, and so it has no token, no network to listen on and no text of a user.
# /run is empty after a reboot, so the path of a volume leads to its own disk or to none, never to the disk of another volume.
set -euo pipefail
own=${FLEX_BASE_DIR:?}/.loop disks=/run/flex-loop
mkdir -p "$own" "$disks"
declare -A disk=() held=() # of the volumes: a loop device without /dev/, and its open file

is_of() { # NAME DEVICE: it is the disk of the volume
  local of=''
  { read -r of <"/sys/block/${2##*/}/loop/backing_file"; } 2>/dev/null || true
  [[ $of = */"$1".img ]]
}

# hold NAME [FD] has the disk open. A pod may tell the kernel to detach its raw device when no process has it open (LOOP_CLR_FD needs no capability), and
# the device may then become the disk of another volume, or of the kubelet, while the path still leads there.
hold() {
  local fd=${held[$1]:-}
  held[$1]=${2:-}
  [ -z "$fd" ] || exec {fd}<&-
}

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
    hold "${BASH_REMATCH[1]}"
  done
}

# attach NAME BYTES gives the file of a volume a disk of its size. The usual case starts no process.
attach() {
  local sectors=0 device=${disk[$1]:-none} fd
  if is_of "$1" "$device"; then
    { read -r sectors <"/sys/block/$device/size"; } 2>/dev/null || true
    [[ $((sectors * 512)) != "$2" || ! $disks/$1 -ef /dev/$device ]] || return 0
  else
    rm -f "$disks/$1"
  fi
  device=$(losetup --nooverlap --find --show "$own/$1.img") || return 0 # one that is attached already; else it is tried again
  losetup --set-capacity "$device" && exec {fd}<"$device" || return 0
  hold "$1" "$fd"
  is_of "$1" "$device" || return 0
  ln -sfn "$device" "$disks/$1"
  disk[$1]=${device##*/}
}

leave() { # the disks stay, but for those that a pod has told to go
  local name
  for name in "${!disk[@]}"; do
    grep -q 0 "/sys/block/${disk[$name]}/loop/autoclear" 2>/dev/null || rm -f "$disks/$name"
  done
  exit 0
}

trap leave TERM
while true; do
  detach
  while read -r bytes file; do
    name=${file##*/}
    [ -z "$file" ] || attach "${name%.img}" "$bytes"
  done <<<"$(stat -c '%s %n' "$own"/pvc-*.img 2>/dev/null)"
  sleep 1
done
