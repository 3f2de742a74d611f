#!/bin/bash
# A provisioner for a node's btrfs: a subvolume for each claim, with a size that is enforced, and
# clones of them.
#
# Config: base-dir, the directory of the node that holds all volumes. Promises: no volume is without
# its limit, since it is created aside, gets its limit there, and then its name; and each run may
# die at any step, and the next one finishes its work.
set -euo pipefail

# A config without the key is for an administrator. It is reported before anything is created.
flex need base-dir
base=$FLEX_BASE_DIR
node=${FLEX_SELECTED_NODE:-}

# No pod mounts what is in here: the notes of whose the volumes are, and what is kept of each.
own=$base/.btrfs
notes=$own/notes

# group_of VOLUME prints the quota group of a volume. Its number is 48 random bits of the UID. With
# the group of another claim a pod could use up its limit.
group_of() {
  local uid=${1#pvc-}
  echo "64/$((16#${uid:0:8}${uid:9:4}))"
}

# used prints what the group of each volume refers to: what its limit counts.
used() {
  local at
  local volume
  {
    for at in "$notes"/pvc-*; do
      volume=${at##*/}
      echo "$(group_of "$volume") $volume"
    done
    btrfs qgroup show --raw "$base"
  } | awk '
    $2 ~ /^pvc-/ { volume[$1] = $2 }
    $1 in volume && $2 ~ /^[0-9]+$/ { print volume[$1], $2 }'
}

if [ "$1" = list ]; then
  # A btrfs on which nothing was ever created has no notes. Without one it is not mounted, and what
  # is on it is not lost: flex list fails.
  if [ ! -d "$notes" ] && [ "$(stat -f -c %t "$base")" = 9123683e ]; then
    exec flex list
  fi
  said=$(mktemp)
  used >"$said" || true
  exec flex list --used "$said" "$notes"
fi

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=$base/${FLEX_PV_NAME:?}
note=$notes/$FLEX_PV_NAME

# What is kept of the volume: its class, its source and its size. The volume itself is here, too,
# until it is complete.
aside=$own/$FLEX_PV_NAME

# With a limit below 128 KiB a volume cannot have one file: btrfs counts its own blocks.
size=$((${FLEX_SIZE:-0} < 1048576 ? 1048576 : FLEX_SIZE))

group=$(group_of "$FLEX_PV_NAME")

# source_of_claim prints the source of this claim's clone: its kind, its name and its volume. The
# file may have the requests of other claims, too.
source_of_claim() {
  jq -r '
    .requests[] | select(.uid == env.FLEX_CLAIM_UID).source | values |
    "\(.kind) \(.namespace)/\(.name) \(.pvName)"' /etc/flex/request.json
}
clone_of_ours='^PersistentVolumeClaim ([a-z0-9-]+/[a-z0-9.-]+) (pvc-[0-9a-f-]{36})$'

# alone waits for what the other runs of the node change, and keeps them waiting until file 9 is
# closed. An earlier run that the kubelet has not ended yet would undo the work of this one.
alone() {
  exec 9<"$own"
  flock -w 60 9 ||
    flex again "another run has been at work on the node $node for a minute;" \
      "the provisioner tries again"
}

# need_quotas turns on the quotas of the node's btrfs. Where there is no btrfs, another node may
# have one, so a provision says that this node has no room. A volume that exists is not lost then,
# only not mounted: its delete or its growth is tried again.
need_quotas() {
  local verdict=again
  [ "$1" != provision ] || verdict=full
  flex quota "$base" ||
    flex "$verdict" "the directory $base of the node $node is not on btrfs:" \
      "mount one there, or name the nodes that have one in allowedTopologies of the class"
}

# kept VOLUME KEY prints what is kept of a volume.
kept() {
  cat "$own/$1/$2" 2>/dev/null || true
}

# keep KEY TEXT keeps something of this volume. A run that is killed leaves the old text or the new.
keep() {
  echo "$2" >"$aside/$1.new"
  mv "$aside/$1.new" "$aside/$1"
}

# limit BYTES sets the limit of the volume's group, and creates the group if there is none.
limit() {
  if ! btrfs qgroup limit "$1" "$group" "$base" 2>/dev/null; then
    btrfs qgroup create "$group" "$base"
    btrfs qgroup limit "$1" "$group" "$base"
  fi
}

# free_bytes prints how much room the node has: its free blocks, times their size.
free_bytes() {
  echo $(($(stat -f -c '%a*%S' "$base")))
}

# need_room BYTES refuses what the node has no room for now. A limit reserves nothing.
need_room() {
  [ "$(free_bytes)" -ge "$1" ] || flex full "the node $node has less than $1 bytes free"
}

# clone VOLUME makes the volume a snapshot of another one, if it may be.
clone() {
  # A snapshot is on the node of its source.
  [ -d "$base/$1" ] ||
    flex full "the volume of the source is not on the node $node:" \
      "the pod of a clone must select the node of its source"

  # Another class may have other rules, such as who may use it.
  [ "$(kept "$1" class)" = "$FLEX_STORAGE_CLASS" ] ||
    flex refuse "the source has another class than $FLEX_STORAGE_CLASS: clone it with its class"

  # It has all that the source has.
  [ "$(kept "$1" size)" -le "$size" ] ||
    flex refuse "a clone cannot be smaller than its source:" \
      "request at least $(kept "$1" size) bytes"

  btrfs subvolume snapshot "$base/$1" "$aside/volume"
}

# create [VOLUME] creates the volume: a clone of another one, or empty.
create() {
  need_room "$size"

  # A run that was killed may have left a volume aside. No pod has used it.
  flex empty "$aside"
  mkdir -p "$aside"

  # The note comes before the volume: no volume is without one, so an audit knows whose it is.
  flex note "$note"
  keep class "$FLEX_STORAGE_CLASS"
  keep source "$1"
  keep size "$size"

  if [ -n "$1" ]; then
    clone "$1"
  else
    btrfs subvolume create "$aside/volume"

    # Pods write there as any user. A clone has the mode of its source.
    chmod 0777 "$aside/volume"
  fi

  # The limit comes before the name: no volume is without one, wherever a run was killed.
  limit "$size"

  # This fails if there is no group, so a volume without a limit does not get its name.
  local id
  id=$(btrfs inspect-internal rootid "$aside/volume")
  btrfs qgroup assign "0/$id" "$group" "$base"

  # From here on it is the volume.
  mv -T "$aside/volume" "$dir"
}

# provision creates the volume, and then the PV that names it.
provision() {
  # A claim that cannot be served is refused first, so that nothing is left of it.
  [ "$FLEX_VOLUME_MODE" = Filesystem ] ||
    flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  [[ $FLEX_ACCESS_MODES != *Many* ]] ||
    flex refuse "a directory is available on one node only: request ReadWriteOnce"

  # A clone names its source on the PV.
  local from
  local source=''
  local patch='{}'
  from=$(source_of_claim)
  if [ -n "$from" ]; then
    [[ $from =~ $clone_of_ours ]] ||
      flex refuse "the source has no volume of this provisioner: remove it from the claim"
    source=${BASH_REMATCH[2]}
    patch='{"metadata":{"annotations":{"flex-provisioner.io/clone-of":"'${BASH_REMATCH[1]}'"}}}'
  fi

  # What has the volume's name is complete. Only one run at a time may look for it and create it: of
  # two, the second would delete what the first has aside.
  alone
  [ -d "$dir" ] || create "$source"
  exec 9<&-

  # The source may have been deleted and created anew since an earlier run created the volume.
  [ "$(kept "$FLEX_PV_NAME" source)" = "$source" ] ||
    flex refuse "the volume was created from another source:" \
      "delete the claim, and create it again"

  # Without this, a power cut could leave a PV without its volume.
  btrfs filesystem sync "$base"

  # The PV comes last, since a claim is bound to it at once: the volume must be there by then.
  flex pv --local "$dir" "$patch"
}

# expand raises the limit, and never lowers it: an earlier run may have raised it to more.
expand() {
  # Without the volume there is nothing to grow, and nothing is created in its place.
  [ -d "$dir" ] || flex again "the volume does not exist: an administrator must look for it"

  # The size is read and written under the lock. Otherwise an earlier run that is still at work
  # could lower what this one has raised.
  alone
  local now
  now=$(kept "$FLEX_PV_NAME" size)
  if [ "$now" -lt "$size" ]; then
    need_room $((size - now))

    # The size is kept before the limit is raised: if the run is killed in between, the next one
    # finds the size, and sets the limit below.
    flex note "$note"
    keep size "$size"
    now=$size
  fi
  limit "$now"
  flex grown "$now"
}

# delete removes the volume, then its note, and last its quota group.
delete() {
  # An audit deletes what a list has named. It must be this claim's.
  [ "${FLEX_LISTED_VOLUME:-$FLEX_PV_NAME}" = "$FLEX_PV_NAME" ] ||
    flex again "the listed volume is not the claim's"

  # Its pods may still write there. flex empty deletes a subvolume through its opened parent, and
  # before it those that pods have created in it.
  flex empty "$dir" "$aside"

  # The note comes after the volume: while there is one, the list has the volume.
  rm -f "$note"

  # When the kernel has freed the space, no group of the volume has a member. That may take long, so
  # a group that still has one is left to the next delete.
  btrfs filesystem sync "$base"
  timeout 20 btrfs subvolume sync "$base" || true

  # Groups of deleted subvolumes go first, also that of one whose data a clone had until now. The
  # lock keeps a group that is created at this moment from being taken for one without members.
  alone
  btrfs qgroup clear-stale "$base" || true

  # The kernel refuses to destroy the group of a volume.
  local unused
  btrfs qgroup show -c "$base" |
    awk '$1 ~ /^64\// && $4 ~ /^-+$/ {print $1}' |
    while read -r unused; do
      btrfs qgroup destroy "$unused" "$base" || true
    done
}

# Another verb must end before anything is created, also the quotas.
case $1 in
  provision | expand | delete) ;;
  *)
    echo "this script supports the verbs provision, expand, delete and list, not $1"
    exit 64
    ;;
esac
need_quotas "$1"
mkdir -p "$notes"
"$1"

# Others need not wait for the disk. The run ends when a power cut can undo nothing of it.
exec 9<&-
btrfs filesystem sync "$base"
