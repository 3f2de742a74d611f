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
  /* | *..* | *[\"\\]*) echo "the parameter directory is $below: it must be below the export"; exit 78 ;;
esac
mode=${FLEX_DIRECTORY_MODE:-0777}
[[ $mode =~ ^[0-7]{3,4}$ ]] || { echo "the parameter directory-mode is $mode: it must be octal"; exit 78; }
place=$below/${FLEX_PV_NAME:?}

provision() {
  if [ "$FLEX_VOLUME_MODE" != Filesystem ]; then
    echo "claim: a directory cannot be a raw block device: request volumeMode Filesystem"
    exit 65
  fi
  mkdir -p "/export/$place" # an earlier run may have made it
  chmod "$mode" "/export/$place"
  kubectl patch --local -f /etc/flex/pv.json --type=merge -o json \
    -p '{"spec":{"nfs":{"server":"'"$FLEX_NFS_SERVER"'","path":"'"$FLEX_NFS_PATH/$place"'"}}}' |
    kubectl create --raw '/api/v1/persistentvolumes?fieldValidation=Strict' -f - ||
    kubectl get --raw "/api/v1/persistentvolumes/$FLEX_PV_NAME" # a rerun finds it there
}

case $1 in
  provision) provision ;;
  delete)
    mkdir -p "/export/$below"   # so that a delete works before the first provision
    flex empty "/export/$place" # its pods may still write there
    ;;
  *) echo "this image supports the verbs provision and delete, not $1"; exit 64 ;;
esac
