#!/bin/bash
# A provisioner in plain bash that serves a batch: directories of an NFS server, for many claims in one run
# on a node of the storage network. It is written for one claim. flex each runs it for each claim of a batch.
set -euo pipefail
[ -n "${FLEX_CLAIM_UID:-}" ] || exec flex each 8 "$0" "$@"
flex need base-dir

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=$FLEX_BASE_DIR/${FLEX_PV_NAME:?}

provision() {
  flex need server export
  [ "$FLEX_VOLUME_MODE" = Filesystem ] || flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  [ -d "$dir" ] || mkdir "$dir" # without -p: where the export is not mounted, the base directory does not exist
  chmod 0777 "$dir" # pods write there as any user
  flex pv '{"spec":{"nfs":{"server":"'"$FLEX_SERVER"'","path":"'"$FLEX_EXPORT/$FLEX_PV_NAME"'"}}}'
}

case $1 in
  provision) provision ;;
  delete) flex empty "$dir" ;; # its pods may still write there
  *) echo "this image supports the verbs provision and delete, not $1"; exit 64 ;;
esac
