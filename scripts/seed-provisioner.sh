#!/bin/bash
# A provisioner with extra steps: a new volume holds a copy of /seed and is announced at a URL before any claim
# is bound to it. Each step may be repeated from any point: an incomplete copy never has the volume's name, and the
# announcement carries the claim's UID, by which its receiver recognizes a repetition.
set -euo pipefail
shopt -s dotglob nullglob

flex need base-dir
# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=$FLEX_BASE_DIR/${FLEX_PV_NAME:?}

copy() {
  [ ! -d "$dir" ] || return 0 # done by an earlier run
  local part=$dir.part.$HOSTNAME # a pod's own: two of one Job may overlap for a moment
  local file files=()
  # In a mounted ConfigMap the kubelet's own names begin with two dots, such as ..data. No key does.
  for file in /seed/*; do
    [[ $file == /seed/..* ]] || files+=("$file")
  done
  [ ${#files[@]} -gt 0 ] || flex misconfigured "/seed has no files: the ConfigMap seed is empty"
  mkdir -p "$FLEX_BASE_DIR" # in case this is the first volume
  flex empty "$part"
  mkdir "$part"
  cp -L "${files[@]}" "$part/" # a mounted ConfigMap is made of links
  chmod a+rwX "$part" "$part"/*
  sync
  mv -T "$part" "$dir" || [ -d "$dir" ]
}

announce() {
  timeout 10 wget -q -O /dev/null --header "Content-Type: application/json" --header "Idempotency-Key: $FLEX_CLAIM_UID" \
    --post-data '{"volume":"'"$FLEX_PV_NAME"'","bytes":'"$FLEX_SIZE"'}' "$FLEX_NOTIFY_URL" && return 0
  flex again "the volume is ready, but could not be announced; the provisioner tries again"
}

case $1 in
  provision)
    flex need notify-url
    [ "$FLEX_VOLUME_MODE" = Filesystem ] || flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
    copy
    announce
    flex pv --local "$dir"
    ;;
  delete) flex empty "$dir" "$dir".part.* ;; # its pods may still write there
  *) echo "this image supports the verbs provision and delete, not $1"; exit 64 ;;
esac
