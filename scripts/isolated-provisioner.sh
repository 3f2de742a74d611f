#!/bin/bash
# A provisioner on a storage node without a network: a directory of an NFS export for each claim. It
# describes the volume, and the dispatcher writes the PV (write-pv: dispatcher), so it has no token.
#
# Config: base-dir (where the export is on the node), nfs-server and nfs-path (by which the nodes of
# the pods mount it). Promises: a delete is safe while pods write; and each run may die at any step,
# and the next one finishes its work. No size is enforced.
set -euo pipefail

# A config without the key is for an administrator. It is reported before anything is created.
flex need base-dir

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=$FLEX_BASE_DIR/${FLEX_PV_NAME:?}

# provision creates the directory, and then the description of its volume.
provision() {
  # A delete needs no address, so these two keys are read here.
  flex need nfs-server nfs-path

  # A claim that cannot be served is refused first, so that nothing is left of it.
  [ "$FLEX_VOLUME_MODE" = Filesystem ] ||
    flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"

  # An earlier run may have created it, and may have been killed here. There is no -p: where the
  # export is not mounted, the base directory does not exist, and a run must fail there.
  [ -d "$dir" ] || mkdir "$dir"

  # Pods write there as any user.
  chmod 0777 "$dir"

  # Or a power cut could leave a PV without its directory.
  sync "$dir" "$FLEX_BASE_DIR"

  # The PV comes last, since a claim is bound to it at once: the directory must be there by then.
  local path=$FLEX_NFS_PATH/$FLEX_PV_NAME
  flex pv '{"spec":{"nfs":{"server":"'"$FLEX_NFS_SERVER"'","path":"'"$path"'"}}}'
}

case $1 in
  provision) provision ;;
  # Its pods may still write there. So no path is walked, and no link of a pod is followed.
  delete) flex empty "$dir" ;;
  *)
    echo "this script supports the verbs provision and delete, not $1"
    exit 64
    ;;
esac
