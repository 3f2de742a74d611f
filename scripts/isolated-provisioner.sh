#!/bin/bash
# A provisioner on a node without a network: it makes a directory of the export and describes the volume. The
# dispatcher writes the PV (write-pv: dispatcher), so this one needs no token and no network.
set -euo pipefail
flex need base-dir

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=$FLEX_BASE_DIR/${FLEX_PV_NAME:?}

provision() {
  flex need nfs-server nfs-path
  [ "$FLEX_VOLUME_MODE" = Filesystem ] || flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  [ -d "$dir" ] || mkdir "$dir" # without -p: where the export is not mounted, the base directory does not exist
  chmod 0777 "$dir"
  flex pv '{"spec":{"nfs":{"server":"'"$FLEX_NFS_SERVER"'","path":"'"$FLEX_NFS_PATH/$FLEX_PV_NAME"'"}}}'
}

case $1 in
  provision) provision ;;
  delete) flex empty "$dir" ;; # its pods may still write there
  *) echo "this image supports the verbs provision and delete, not $1"; exit 64 ;;
esac
