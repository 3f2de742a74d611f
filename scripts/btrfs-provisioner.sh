#!/bin/bash
# Subvolumes of a node's btrfs, with a size that is enforced. A volume is created aside, gets its limit there, and then its name: what has the
# name is complete. Each step may be repeated, and no text of a user becomes part of a path.
set -euo pipefail
flex need base-dir; base=$FLEX_BASE_DIR own=$FLEX_BASE_DIR/.btrfs # what is in .btrfs no pod mounts
[ "$1" != list ] || exec flex list "$own/notes"
dir=$base/${FLEX_PV_NAME:?} aside=$own/$FLEX_PV_NAME note=$own/notes/$FLEX_PV_NAME uid=${FLEX_PV_NAME#pvc-}
# With a limit below 128 KiB a volume cannot have one file: btrfs counts its own blocks.
size=$((${FLEX_SIZE:-0} < 1048576 ? 1048576 : FLEX_SIZE))
group=64/$((16#${uid:0:8}${uid:9:4})) # 48 random bits: with the group of another claim a pod could use up its limit
from='"source":\{"kind":"PersistentVolumeClaim","namespace":"([a-z0-9-]+)","name":"([a-z0-9.-]+)","uid":"[^"]*","pvName":"(pvc-[0-9a-f-]{36})"\}'
# alone waits for what the other runs of the node change, until file 9 is closed: a run that the kubelet has not ended yet would undo its successor's work.
alone() { exec 9<"$own"; flock -w 60 9 || flex again "another run has been at work on the node ${FLEX_SELECTED_NODE:-} for a minute; the provisioner tries again"; }
kept() { cat "$own/$1/$2" 2>/dev/null || true; } # VOLUME KEY
keep() { echo "$2" >"$aside/$1.new"; mv "$aside/$1.new" "$aside/$1"; } # KEY TEXT
limit() { btrfs qgroup limit "$1" "$group" "$base" 2>/dev/null || { btrfs qgroup create "$group" "$base"; btrfs qgroup limit "$1" "$group" "$base"; }; } # BYTES
clone() { # VOLUME
  [ -d "$base/$1" ] || flex full "the volume of the source is not on the node $FLEX_SELECTED_NODE: the pod of a clone must select the node of its source"
  [ "$(kept "$1" class)" = "$FLEX_STORAGE_CLASS" ] || flex refuse "the source has another class than $FLEX_STORAGE_CLASS: clone it with its class"
  [ "$(kept "$1" size)" -le "$size" ] || flex refuse "a clone cannot be smaller than its source: request at least $(kept "$1" size) bytes"
  btrfs subvolume snapshot "$base/$1" "$aside/volume"
}
room() { [ $(($(stat -f -c '%a*%S' "$base"))) -ge "$1" ] || flex full "the node ${FLEX_SELECTED_NODE:-} has less than $1 bytes free"; } # BYTES
make() { # [VOLUME]: a clone of it, or an empty volume
  room "$size"
  flex empty "$aside"; mkdir -p "$aside" # there may be one of a run that was killed
  flex note "$note" # what an audit needs to know of the claim
  keep class "$FLEX_STORAGE_CLASS"; keep source "$1"; keep size "$size"
  if [ -n "$1" ]; then clone "$1"; else btrfs subvolume create "$aside/volume"; chmod 0777 "$aside/volume"; fi # pods write as any user
  limit "$size"
  btrfs qgroup assign "0/$(btrfs inspect-internal rootid "$aside/volume")" "$group" "$base" # fails if there is no group
  mv -T "$aside/volume" "$dir"
}
provision() {
  local volume='' patch='{}' request; request=$(</etc/flex/request.json)
  [ "$FLEX_VOLUME_MODE" = Filesystem ] || flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  [[ $FLEX_ACCESS_MODES != *Many* ]] || flex refuse "a directory is available on one node only: request ReadWriteOnce"
  if [[ $request == *'"source":{'* ]]; then
    [[ $request =~ $from ]] || flex refuse "the source has no volume of this provisioner: remove it from the claim"
    volume=${BASH_REMATCH[3]} patch='{"metadata":{"annotations":{"flex-provisioner.io/clone-of":"'${BASH_REMATCH[1]}/${BASH_REMATCH[2]}'"}}}'
  fi
  alone; [ -d "$dir" ] || make "$volume"; exec 9<&-
  [ "$(kept "$FLEX_PV_NAME" source)" = "$volume" ] || flex refuse "the volume was created from another source: delete the claim, and create it again"
  btrfs filesystem sync "$base" # or a power cut could leave a PV without its volume
  flex pv --local "$dir" "$patch"
}
expand() { # never to less than in an earlier run
  local now
  [ -d "$dir" ] || flex again "the volume does not exist: an administrator must look for it"
  alone
  now=$(kept "$FLEX_PV_NAME" size)
  if [ "$now" -lt "$size" ]; then
    room $((size - now))
    flex note "$note"
    keep size "$size"
    now=$size
  fi
  limit "$now"
  flex grown "$now"
}
delete() { # flex empty deletes a subvolume through its opened parent, and before it those that pods have created in it
  [ "${FLEX_LISTED_VOLUME:-$FLEX_PV_NAME}" = "$FLEX_PV_NAME" ] || flex again "the listed volume is not the claim's"
  flex empty "$dir" "$aside"; rm -f "$note"
  btrfs filesystem sync "$base"; timeout 20 btrfs subvolume sync "$base" || true # when the kernel has freed the space, no group of the volume has a member
  alone; btrfs qgroup clear-stale "$base" || true # groups of deleted subvolumes, also of one whose data a clone had until now
  btrfs qgroup show -c "$base" | awk '$1 ~ /^64\// && $4 ~ /^-+$/ {print $1}' |
    while read -r unused; do btrfs qgroup destroy "$unused" "$base" || true; done # the kernel refuses to destroy that of a volume
}
[[ $1 =~ ^(provision|expand|delete)$ ]] || { echo "this image supports the verbs provision, expand, delete and list, not $1"; exit 64; }
flex quota "$base" || flex "$([ "$1" = provision ] && echo full || echo again)" "the directory $base of the node ${FLEX_SELECTED_NODE:-} is not on btrfs: mount one there, or name the nodes that have one in allowedTopologies of the class"
mkdir -p "$own/notes"; "$1"; exec 9<&-
btrfs filesystem sync "$base"
