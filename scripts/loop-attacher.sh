#!/bin/bash
# Makes disks of the files that loop-provisioner.sh creates. It runs on each node without end, by
# the DaemonSet of configmaps/loop.yaml or by systemd. It is privileged, since Kubernetes gives
# a loop device to no other container. So it has no token, and listens on no network.
#
# Variable: FLEX_BASE_DIR, the directory of the node that holds all volumes. Promises: no text of a
# user is read; and the path of a volume leads to its own disk or to none, never to the disk of
# another volume, also after a reboot, which empties /run.
set -euo pipefail

# The files are here, in a directory that no pod mounts.
own=${FLEX_BASE_DIR:?}/.loop

# The links to the disks are here, each with the name of its volume.
disks=/run/flex-loop
mkdir -p "$own" "$disks"

# What it knows from one round to the next, by names without /dev/: the loop device of a volume, and
# the loop device that is on top of another one.
declare -A disk=()
declare -A top=()

# file_of DEVICE sets the variable of to the file of a loop device, and fails if it has none. The
# device may be detached at any moment, so there is no look before the read.
file_of() {
  of=''
  { read -r of <"/sys/block/$1/loop/backing_file"; } 2>/dev/null
}

# is_of NAME DEVICE reports whether the device is the disk of the volume.
is_of() {
  local of
  file_of "$2" || true
  [[ $of = */"$1".img ]]
}

# hold DEVICE lets the kernel have the disk open, by a second loop device on top of it that no pod
# gets. A pod may tell the kernel to detach its raw device when nothing else has it open
# (LOOP_CLR_FD needs no capability). The device may then become the disk of another volume, or of
# the kubelet, while the path still leads there. What this program has open is open only until it
# ends, and a pod may wait for that.
hold() {
  [ -n "${top[$1]:-}" ] || losetup --read-only --sizelimit 512 --find "/dev/$1"
}

# detach detaches the disks whose files were removed. The kernel detaches one that is in use when it
# is closed, so a delete waits for that.
detach() {
  local at of

  # Another of these programs may have detached the disk already. What is left of a link could lead
  # to the disk of another volume.
  for at in "$disks"/*; do
    if [[ -L $at && ! -e $own/${at##*/}.img ]]; then
      rm -f "$at"
    fi
  done

  # What is on top of what, and each disk whose file was removed, with its volume.
  local removed=()
  top=()
  for at in /sys/block/loop*; do
    at=${at##*/}
    file_of "$at" || continue
    if [[ $of =~ /(loop[0-9]+)$ ]]; then
      top[${BASH_REMATCH[1]}]=$at
    fi
    if [[ $of =~ /(pvc-[0-9a-f-]{36})\.img' (deleted)'$ ]]; then
      removed+=("$at ${BASH_REMATCH[1]}")
    fi
  done

  local device name
  for at in "${removed[@]}"; do
    device=${at% *}
    name=${at#* }

    # The link goes first: once the device is detached, it can be another volume's disk.
    rm -f "$disks/$name"

    # What is on top goes before what is below: the kernel keeps what is still open. If one of them
    # fails, the next round tries again.
    [ -z "${top[$device]:-}" ] || losetup --detach "/dev/${top[$device]}" || true
    losetup --detach "/dev/$device" || true
  done
}

# is_ready NAME BYTES DEVICE reports whether nothing is left to do for a disk: it has the size of
# its file, the link leads to it, and another device is on top of it.
is_ready() {
  local sectors=0
  { read -r sectors <"/sys/block/$3/size"; } 2>/dev/null || true
  [[ $((sectors * 512)) = "$2" && $disks/$1 -ef /dev/$3 && -n ${top[$3]:-} ]]
}

# attach NAME BYTES gives the file of a volume a disk of its size.
attach() {
  local name=$1
  local bytes=$2
  local device=${disk[$name]:-none}

  # The usual case starts no process: this runs for each volume once a second.
  if is_of "$name" "$device"; then
    if is_ready "$name" "$bytes" "$device"; then
      return
    fi
  else
    # The volume has no disk, or another one than before. Until it has, the link leads to none.
    rm -f "$disks/$name"
  fi

  # --nooverlap takes the device that the file has already, if there is one. A step that fails here
  # is tried again in the next round, and the link is not there until all have succeeded.
  device=$(losetup --nooverlap --find --show "$own/$name.img") || return 0
  device=${device##*/}

  # The file may have grown.
  losetup --set-capacity "/dev/$device" || return 0
  hold "$device" || return 0

  # A pod may have had the device detached before it was held. From here on none can.
  is_of "$name" "$device" || return 0
  ln -sfn "/dev/$device" "$disks/$name"
  disk[$name]=$device
}

# When this program ends, the disks stay, and so does what holds them.
trap 'exit 0' TERM

while true; do
  # detach also finds what is on top of what, which attach uses.
  detach

  # Each file with its size. Without files there is one empty line.
  while read -r bytes file; do
    if [ -n "$file" ]; then
      file=${file##*/}
      attach "${file%.img}" "$bytes"
    fi
  done <<<"$(stat -c '%s %n' "$own"/pvc-*.img 2>/dev/null)"
  sleep 1
done
