#!/bin/bash
# A provisioner for directories of nodes: one for each claim, on the node that the scheduler
# selected.
#
# Config: base-dir, the directory of the node that holds all volumes. Promises: a delete is safe
# while pods write; and each run may die at any step, and the next one finishes its work. No size is
# enforced: a pod can fill the file system of its node.
set -euo pipefail

# A config without the key is for an administrator. It is reported before anything is created.
flex need base-dir

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=$FLEX_BASE_DIR/${FLEX_PV_NAME:?}

# provision creates the directory, and then the PV that names it.
provision() {
  # A claim that cannot be served is refused first, so that nothing is left of it.
  [ "$FLEX_VOLUME_MODE" = Filesystem ] ||
    flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  case $FLEX_ACCESS_MODES in
    *ReadWriteMany* | *ReadOnlyMany*)
      flex refuse "a directory is available on one node only: request ReadWriteOnce"
      ;;
  esac

  # An earlier run may have created it, and may have been killed here. Then -p makes this a success.
  mkdir -p "$dir"

  # Pods write there as any user.
  chmod 0777 "$dir"

  # Or a power cut could leave a PV without its directory.
  sync "$dir" "$FLEX_BASE_DIR"

  # The PV comes last, since a claim is bound to it at once: the directory must be there by then.
  flex pv --local "$dir"
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
