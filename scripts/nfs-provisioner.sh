#!/bin/bash
# A provisioner in plain bash: one directory per claim below an NFS export that its pods mount at /export. The
# classes that it serves differ by parameters alone: configmaps/nfs.yaml, configmaps/nfs-tiers.yaml.
# A directory does not limit how much is written into it, and files that pods wrote as another user cannot be removed.
# The server must provide for both: by quotas, and by all_squash.
set -euo pipefail

# One part of the path comes from the administrator (the class's parameter directory), the other from the dispatcher
# (pvc-UID). No text of a user is part of it.
below=${FLEX_DIRECTORY:-volumes}
case $below in
  /* | *..* | *[\"\\]*) flex misconfigured "the parameter directory is $below: it must be below the export" ;;
esac
mode=${FLEX_DIRECTORY_MODE:-0777}
[[ $mode =~ ^[0-7]{3,4}$ ]] || flex misconfigured "the parameter directory-mode is $mode: it must be octal"
place=$below/${FLEX_PV_NAME:?}

provision() {
  [ "$FLEX_VOLUME_MODE" = Filesystem ] || flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  mkdir -p "/export/$place" # an earlier run may have made it
  chmod "$mode" "/export/$place"
  flex pv '{"spec":{"nfs":{"server":"'"$FLEX_NFS_SERVER"'","path":"'"$FLEX_NFS_PATH/$place"'"}}}'
}

case $1 in
  provision) provision ;;
  delete)
    mkdir -p "/export/$below"   # so that a delete works before the first provision
    flex empty "/export/$place" # its pods may still write there
    ;;
  *) echo "this image supports the verbs provision and delete, not $1"; exit 64 ;;
esac
