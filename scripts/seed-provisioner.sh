#!/bin/bash
# A provisioner for directories of nodes that begin as a copy of /seed, and are announced at a URL
# before any claim is bound to them. It shows how steps are added so that each can be repeated.
#
# Config: base-dir (the directory of the node that holds all volumes), notify-url, and a
# pod-template that mounts /seed. Promises: an incomplete copy never has the volume's name, and each
# announcement carries the claim's UID, by which its receiver recognizes a repetition.
set -euo pipefail

# The files to copy may begin with a dot. Without files, the pattern below must mean none.
shopt -s dotglob nullglob

# A config without the key is for an administrator. It is reported before anything is created.
flex need base-dir

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=$FLEX_BASE_DIR/${FLEX_PV_NAME:?}

# copy creates the volume with its files, under another name until it is complete.
copy() {
  # What has the volume's name is complete. A pod may have written to it since: it is left alone.
  [ ! -d "$dir" ] || return 0

  # In a mounted ConfigMap the kubelet's own names begin with two dots, such as ..data. No key does.
  local file
  local files=()
  for file in /seed/*; do
    [[ $file == /seed/..* ]] || files+=("$file")
  done
  [ ${#files[@]} -gt 0 ] || flex misconfigured "/seed has no files: the ConfigMap seed is empty"

  # This may be the first volume of the node.
  mkdir -p "$FLEX_BASE_DIR"

  # The copy has the name of its pod in it, since two pods of one Job may overlap for a moment.
  # A container of this pod that was killed may have left a part. The delete removes those of all.
  local part=$dir.part.$HOSTNAME
  flex empty "$part"
  mkdir "$part"

  # The files of a mounted ConfigMap are links. -L copies what they lead to.
  cp -L "${files[@]}" "$part/"

  # Pods read and write there as any user.
  chmod a+rwX "$part" "$part"/*

  # The data are on the disk before they have the volume's name: after a power cut, a volume that
  # has its name has its files, too.
  sync

  # If another pod has been faster, its copy is the volume, and -T keeps this one out of it.
  mv -T "$part" "$dir" || [ -d "$dir" ]
}

# announce reports the volume. If that fails, the run is repeated, and finds the volume there.
announce() {
  local volume='{"volume":"'"$FLEX_PV_NAME"'","bytes":'"$FLEX_SIZE"'}'
  timeout 10 wget -q -O /dev/null \
    --header "Content-Type: application/json" \
    --header "Idempotency-Key: $FLEX_CLAIM_UID" \
    --post-data "$volume" "$FLEX_NOTIFY_URL" ||
    flex again "the volume is ready, but could not be announced; the provisioner tries again"
}

# provision copies before it announces: what is announced is complete. The PV comes last, since a
# claim is bound to it at once. A run that is killed in between announces a second time.
provision() {
  # A delete announces nothing, so this key is read here.
  flex need notify-url

  # A claim that cannot be served is refused first, so that nothing is left of it.
  [ "$FLEX_VOLUME_MODE" = Filesystem ] ||
    flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"

  copy

  # Or a power cut could leave a PV without its directory.
  sync "$FLEX_BASE_DIR"

  announce
  flex pv --local "$dir"
}

case $1 in
  provision) provision ;;
  # Its pods may still write there. So no path is walked, and no link of a pod is followed.
  delete) flex empty "$dir" "$dir".part.* ;;
  *)
    echo "this script supports the verbs provision and delete, not $1"
    exit 64
    ;;
esac
