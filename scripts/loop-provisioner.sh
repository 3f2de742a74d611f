#!/bin/bash
# A provisioner for disks that are files of a node, with a size that any file system enforces. It
# creates, grows and removes the file of a volume, without a device and without a capability.
# loop-attacher.sh, on each node, makes disks of the files.
#
# Config: base-dir, the directory of the node that holds all volumes. Promises: a file never
# shrinks; and each run may die at any step, and the next one finishes its work.
set -euo pipefail

# No user of the node reads the files.
umask 077

# A config without the key is for an administrator. It is reported before anything is created.
flex need base-dir
base=$FLEX_BASE_DIR
node=${FLEX_SELECTED_NODE:-}

# No pod mounts what is in here: the files, and the notes of whose they are.
own=$base/.loop
notes=$own/notes

# used prints what each volume's file takes of the node: its blocks, times their size. A file that
# is deleted at this moment has no line.
used() {
  cd "$own" || return
  stat -c '%n %b %B' pvc-*.img |
    while read -r name blocks unit; do
      echo "${name%.img} $((blocks * unit))"
    done
}

if [ "$1" = list ]; then
  # A node on which nothing was ever created has no notes. Without the directory it is not mounted,
  # and what is in it is not lost: flex list fails.
  if [ ! -d "$notes" ] && [ -d "$base" ]; then
    exec flex list
  fi
  said=$(mktemp)
  (used) >"$said" || true
  exec flex list --used "$said" "$notes"
fi

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
file=$own/${FLEX_PV_NAME:?}.img
note=$notes/$FLEX_PV_NAME

# The PV names this path. It is a link into /run, where loop-attacher.sh puts a link to the disk.
path=$base/$FLEX_PV_NAME

# A disk consists of whole sectors, so a size is rounded up, to whole mebibytes.
size=$(((${FLEX_SIZE:-0} + 1048575) / 1048576 * 1048576))

# disk prints the size of the volume's disk in sectors, and nothing if the file is not attached. The
# kernel keeps the name of a file that was removed.
disk() {
  local at of
  for at in /sys/block/loop*; do
    # A device that has no file, or is detached at this moment, has no such entry.
    { read -r of <"$at/loop/backing_file"; } 2>/dev/null || continue
    if [[ $of =~ /$FLEX_PV_NAME\.img(' (deleted)')?$ ]]; then
      cat "$at/size"
    fi
  done
}

# is_attached reports whether the disk has at least the size of the claim.
is_attached() {
  [ $((10#0$(disk) * 512)) -ge "$size" ]
}

is_detached() {
  [ -z "$(disk)" ]
}

# await TEST MESSAGE waits half a minute for the program that makes disks of the files.
await() {
  for _ in {1..30}; do
    if "$1"; then
      return
    fi
    sleep 1
  done
  flex again "$2 on the node $node"
}

# alone waits for what the other runs of the node change, and keeps them waiting until file 9 is
# closed. An earlier run that the kubelet has not ended yet would undo the work of this one.
alone() {
  mkdir -p "$own"
  exec 9<"$own"
  flock -w 60 9 ||
    flex again "another run has been at work on the node $node for a minute;" \
      "the provisioner tries again"
}

# free_bytes prints how much room the node has: its free blocks, times their size.
free_bytes() {
  echo $(($(stat -f -c '%a*%S' "$base")))
}

# file_bytes prints the size of the volume's file, and 0 if there is none.
file_bytes() {
  stat -c %s "$file" 2>/dev/null || echo 0
}

# need_room refuses what the node has no room for now. A file without data reserves nothing.
need_room() {
  [ "$(free_bytes)" -ge $((FLEX_SIZE - $(file_bytes))) ] ||
    flex full "the node $node has less than $FLEX_SIZE bytes free"
}

# grow gives the file its size, ends what began with alone, and waits for the disk.
grow() {
  # The file never shrinks: that would cut off data, and an earlier run may have grown it to more.
  if [ "$(file_bytes)" -lt "$size" ]; then
    # The note comes first: no file is without one, so an audit knows whose it is.
    flex note "$note"
    truncate -s "$size" "$file"
  fi

  # The others need not wait for the disk.
  exec 9<&-

  # Without this, a power cut could leave a PV without its file.
  sync -f "$own"
  await is_attached \
    "the file of the volume was not attached: no pod of the DaemonSet loop-attacher works"
}

# provision creates the file, waits until it is a disk, and then writes the PV that names it.
provision() {
  # A claim that cannot be served is refused first, so that nothing is left of it.
  [[ $FLEX_ACCESS_MODES != *Many* ]] ||
    flex refuse "a disk of a node is available on that node only: request ReadWriteOnce"

  # mkfs makes none that is smaller, and the pod of the claim would wait for ever. For btrfs,
  # btrfs-progs 6.2 says 114294784 bytes.
  local least=0
  case $FLEX_VOLUME_MODE/${FLEX_FSTYPE:-} in
    Filesystem/xfs) least=300 ;;
    Filesystem/btrfs) least=109 ;;
  esac
  [ "$FLEX_SIZE" -gt $(((least - 1) * 1048576)) ] ||
    flex refuse "this file system has at least $least MiB: request at least ${least}Mi"

  # Nothing is created before the lock is held, or a delete that is still at work could remove it.
  alone
  need_room
  mkdir -p "$notes"

  # The link leads to no disk until the file is attached, also after a reboot. It comes before the
  # file: a run that is killed here leaves a link alone, which the delete removes.
  ln -sfn "/run/flex-loop/$FLEX_PV_NAME" "$path"
  grow

  # The PV comes last, since a claim is bound to it at once: the disk must be there by then.
  local patch='{}'
  if [ "$FLEX_VOLUME_MODE" != Block ]; then
    patch='{"spec":{"local":{"fsType":"'${FLEX_FSTYPE:-ext4}'"}}}'
  fi
  flex pv --local "$path" "$patch"
}

# expand grows the file, and waits until its disk has grown.
expand() {
  # Without the file, grow would put an empty disk in the place of a lost one.
  alone
  [ -e "$file" ] ||
    flex again "the file of the volume does not exist: an administrator must look for it"

  # Room comes before the size counts: rounded up, it may be too large for a number.
  need_room
  grow
  flex grown "$(stat -c %s "$file")"
}

# delete removes the file, waits until it is no disk, and then removes what names it.
delete() {
  # An audit deletes what a list has named. It must be this claim's.
  [ "${FLEX_LISTED_VOLUME:-$FLEX_PV_NAME}" = "$FLEX_PV_NAME" ] ||
    flex again "the listed volume is not the claim's"

  # The file goes first: the program on the node then detaches its disk.
  alone
  rm -f "$file"
  exec 9<&-

  # Others need not wait for this. A disk that a pod still uses is detached when the pod ends. A run
  # that ends before is repeated, and finds the note and the link still there.
  await is_detached "the volume is in use, or no pod of the DaemonSet loop-attacher works"

  # The note comes last: while there is one, the list has the volume. A file that is there again is
  # that of another run, and so are its note and its link.
  alone
  [ -e "$file" ] || rm -f "$path" "$note"

  # Without this, a power cut could bring the file back after its PV was deleted.
  sync -f "$own"
}

case $1 in
  provision) provision ;;
  expand) expand ;;
  delete) delete ;;
  *)
    echo "this script supports the verbs provision, expand, delete and list, not $1"
    exit 64
    ;;
esac
