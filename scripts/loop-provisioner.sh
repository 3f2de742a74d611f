#!/bin/bash
# Files of a node as disks, with a size that is enforced on any file system. This creates, grows and removes the file of a volume, without a device
# and without a capability; scripts/loop-attacher.sh, on each node, makes disks of the files. Each step may be repeated.
set -euo pipefail; umask 077 # no user of the node reads the files
flex need base-dir; base=$FLEX_BASE_DIR own=$FLEX_BASE_DIR/.loop # what is in .loop no pod mounts
[ "$1" != list ] || exec flex list "$own/notes"
file=$own/${FLEX_PV_NAME:?}.img path=$base/$FLEX_PV_NAME note=$own/notes/$FLEX_PV_NAME
size=$(((${FLEX_SIZE:-0} + 1048575) / 1048576 * 1048576)) # a disk consists of whole sectors
# disk prints the size of the volume's disk in sectors, and nothing if the file is not attached. The kernel keeps the name of a file that was removed.
disk() {
  local at of
  for at in /sys/block/loop*; do
    if { read -r of <"$at/loop/backing_file"; } 2>/dev/null && [[ $of =~ /$FLEX_PV_NAME\.img(' (deleted)')?$ ]]; then cat "$at/size"; fi
  done
}
is_attached() { [ $((10#0$(disk) * 512)) -ge "$size" ]; }
is_detached() { [ -z "$(disk)" ]; }
await() { # TEST MESSAGE
  for _ in {1..30}; do
    if "$1"; then return; fi
    sleep 1
  done
  flex again "$2 on the node ${FLEX_SELECTED_NODE:-}"
}
# alone waits for what the other runs of the node change, until file 9 is closed: a run that the kubelet has not ended yet would undo its successor's work.
alone() {
  mkdir -p "$own"; exec 9<"$own"
  flock -w 60 9 || flex again "another run has been at work on the node ${FLEX_SELECTED_NODE:-} for a minute; the provisioner tries again"
}
room() { [ $(($(stat -f -c '%a*%S' "$base"))) -ge $((FLEX_SIZE - $(stat -c %s "$file" 2>/dev/null || echo 0))) ] || flex full "the node ${FLEX_SELECTED_NODE:-} has less than $FLEX_SIZE bytes free"; }
grow() {
  if [ "$(stat -c %s "$file" 2>/dev/null || echo 0)" -lt "$size" ]; then # it never shrinks
    flex note "$note" # what an audit needs to know of the claim
    truncate -s "$size" "$file"
  fi
  exec 9<&-
  sync -f "$own" # or a power cut could leave a PV without its file
  await is_attached "the file of the volume was not attached: no pod of the DaemonSet loop-attacher works"
}
expand() {
  alone; [ -e "$file" ] || flex again "the file of the volume does not exist: an administrator must look for it" # an empty disk would take its place
  room; grow; flex grown "$(stat -c %s "$file")" # room before the size counts: rounded up it may be too large for a number
}
provision() {
  local patch='{}' least=0
  [[ $FLEX_ACCESS_MODES != *Many* ]] || flex refuse "a disk of a node is available on that node only: request ReadWriteOnce"
  # mkfs makes none that is smaller, and the pod of the claim would wait for ever.
  case $FLEX_VOLUME_MODE/${FLEX_FSTYPE:-} in
    Filesystem/xfs) least=300 ;;
    Filesystem/btrfs) least=109 ;; # btrfs-progs 6.2 says 114294784 bytes
  esac
  [ "$FLEX_SIZE" -gt $(((least - 1) * 1048576)) ] ||
    flex refuse "this file system has at least $least MiB: request at least ${least}Mi"
  alone; room; mkdir -p "$own/notes"
  ln -sfn "/run/flex-loop/$FLEX_PV_NAME" "$path" # it leads to no disk until the file is attached, also after a reboot
  grow
  [ "$FLEX_VOLUME_MODE" = Block ] || patch='{"spec":{"local":{"fsType":"'${FLEX_FSTYPE:-ext4}'"}}}'
  flex pv --local "$path" "$patch"
}
delete() {
  [ "${FLEX_LISTED_VOLUME:-$FLEX_PV_NAME}" = "$FLEX_PV_NAME" ] || flex again "the listed volume is not the claim's"
  alone; rm -f "$file"; exec 9<&-
  await is_detached "the volume is in use, or no pod of the DaemonSet loop-attacher works"
  alone; [ -e "$file" ] || rm -f "$path" "$note" # a file that is there again is that of another run
}
[[ $1 =~ ^(provision|expand|delete)$ ]] || { echo "this image supports the verbs provision, expand, delete and list, not $1"; exit 64; }
"$1"
