#!/bin/bash
# A provisioner in plain bash: one directory per claim, on the node that the scheduler selected.
set -euo pipefail

flex need base-dir
# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=$FLEX_BASE_DIR/${FLEX_PV_NAME:?}

provision() {
  [ "$FLEX_VOLUME_MODE" = Filesystem ] || flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  case $FLEX_ACCESS_MODES in
    *ReadWriteMany* | *ReadOnlyMany*) flex refuse "a directory is available on one node only: request ReadWriteOnce" ;;
  esac
  mkdir -p "$dir"
  chmod 0777 "$dir" # pods write there as any user
  flex pv --local "$dir"
}

case $1 in
  provision) provision ;;
  delete) flex empty "$dir" ;; # its pods may still write there
  *) echo "this image supports the verbs provision and delete, not $1"; exit 64 ;;
esac
