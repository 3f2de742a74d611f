#!/bin/bash
# A provisioner in plain bash: one directory per claim below an NFS export that its pods mount at /export. The
# classes that it serves differ by parameters alone: configmaps/nfs.yaml, configmaps/nfs-tiers.yaml.
# A directory does not limit how much is written into it, and files that pods wrote as another user cannot be removed.
# The server must provide for both: by quotas, and by all_squash. With quota: btrfs (configmaps/nfs-btrfs.yaml) the pods
# are root on the server, /export is its btrfs, and a claim has a subvolume there with its size as the limit.
set -euo pipefail

# One part of the path comes from the administrator (the class's parameter directory), the other from the dispatcher
# (pvc-UID). No text of a user is part of it.
below=${FLEX_DIRECTORY:-volumes}
case $below in
  /* | *..* | *[\"\\]*) flex misconfigured "the parameter directory is $below: it must be below the export" ;;
esac
mode=${FLEX_DIRECTORY_MODE:-0777}
[[ $mode =~ ^[0-7]{3,4}$ ]] || flex misconfigured "the parameter directory-mode is $mode: it must be octal"
[[ ${FLEX_QUOTA:=none} =~ ^(none|btrfs)$ ]] || flex misconfigured "quota is $FLEX_QUOTA: it must be btrfs, or absent"
place=$below/${FLEX_PV_NAME:?} dir=/export/$place aside=/export/$below/.new-$FLEX_PV_NAME
# With a limit below 128 KiB a subvolume cannot have one file: btrfs counts its own blocks.
size=$((${FLEX_SIZE:-0} < 1048576 ? 1048576 : FLEX_SIZE))

room() { [ $(($(stat -f -c '%a*%S' /export))) -ge "$1" ] || flex full "the server has less than $1 bytes free"; } # BYTES
# alone waits for what the other runs of the server change, until file 9 is closed: one that the kubelet has not ended yet would undo its successor's work.
alone() { exec 9</export; flock -w 60 9 || flex again "another run has been at work on the server for a minute; the provisioner tries again"; }
# is_subvolume reports whether the volume is one: any other directory has no limit of its own.
is_subvolume() { [ "$(stat -c %i "$dir")" = 256 ]; }
# limit sets the limit of a subvolume by its number: one that is full refuses a limit by its name.
limit() { # BYTES DIR
  local id
  id=$(btrfs inspect-internal rootid "$2")
  btrfs qgroup limit "$1" "0/$id" /export
}
# subvolume gives it its limit before its name: no volume is without one, wherever a run was killed.
subvolume() {
  room "$size"
  flex empty "$aside" # of a run that was killed
  btrfs subvolume create "$aside"
  chmod "$mode" "$aside" # before the limit, which may leave no room for it
  limit "$size" "$aside"
  mv -T "$aside" "$dir"
}
provision() {
  flex need nfs-server nfs-path
  [ "$FLEX_VOLUME_MODE" = Filesystem ] || flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  mkdir -p "/export/$below"
  case $FLEX_QUOTA in
    none) mkdir -p "$dir"; chmod "$mode" "$dir" ;; # an earlier run may have made it
    btrfs)
      alone
      [ -d "$dir" ] || subvolume
      exec 9<&-
      is_subvolume ||
        flex again "$FLEX_PV_NAME is a directory without a limit: an administrator must delete it"
      btrfs filesystem sync /export # or a power cut could leave a PV without its volume
      ;;
  esac
  flex pv '{"spec":{"nfs":{"server":"'"$FLEX_NFS_SERVER"'","path":"'"$FLEX_NFS_PATH/$place"'"}}}'
}
# expand never lowers a limit. That of a directory would be the limit of all that is beside it.
expand() {
  local now
  [ -d "$dir" ] || flex again "the volume does not exist: an administrator must look for it"
  is_subvolume || flex misconfigured "$FLEX_PV_NAME is not a subvolume: it cannot grow"
  alone
  now=$(btrfs qgroup show -rf --raw "$dir" | awk '/^0\// { print $4 }')
  [[ $now =~ ^[0-9]+$ ]] || now=0 # "none", since quotas have been off
  if [ "$now" -lt "$size" ]; then
    room $((size - now))
    now=$size
    limit "$now" "$dir"
  fi
  btrfs filesystem sync /export
  flex grown "$now"
}

[ "$FLEX_QUOTA" = none ] || flex quota /export || flex "$([ "$1" = provision ] && echo misconfigured || echo again)" "the server's /export is not on btrfs: an administrator has to mount one there"
case $1/$FLEX_QUOTA in
  provision/*) provision ;;
  expand/btrfs) expand ;;
  delete/*)
    mkdir -p "/export/$below"  # so that a delete works before the first provision
    flex empty "$dir" "$aside" # its pods may still write there
    [ "$FLEX_QUOTA" = none ] || { btrfs filesystem sync /export; btrfs qgroup clear-stale /export || true; } # of earlier ones, where the kernel has not
    ;;
  *) echo "this image supports the verbs provision and delete, and with quota: btrfs expand, not $1"; exit 64 ;;
esac
