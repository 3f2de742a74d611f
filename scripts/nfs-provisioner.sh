#!/bin/bash
# A provisioner for an NFS export, which its pods mount at /export: a directory for each claim. With
# quota: btrfs or quota: xfs its pods are root on the server, /export is the server's own file
# system, and a claim has a subvolume or a project there with its size as the limit. Without, the
# server must limit sizes by its own quotas, and must map all users to one (all_squash), or deletes
# would fail.
#
# Config: nfs-server, nfs-path and quota. Parameters of the class: directory and directory-mode.
# Promises: with quota no volume is without its limit; and each run may die at any step, and the
# next one finishes its work.
set -euo pipefail

# What an administrator can write wrongly is refused before anything is created.
below=${FLEX_DIRECTORY:-volumes}
mode=${FLEX_DIRECTORY_MODE:-0777}
quota=${FLEX_QUOTA:-none}
case $below in
  /* | *..* | *[\"\\]*)
    flex misconfigured "the parameter directory is $below: it must be below the export"
    ;;
esac
[[ $mode =~ ^[0-7]{3,4}$ ]] ||
  flex misconfigured "the parameter directory-mode is $mode: it must be octal"
[[ $quota =~ ^(none|btrfs|xfs)$ ]] ||
  flex misconfigured "quota is $quota: it must be btrfs or xfs, or absent"

# One part of the path comes from the administrator (the class's parameter directory), the other
# from the dispatcher (pvc-UID). No text of a user is part of it.
place=$below/${FLEX_PV_NAME:?}
dir=/export/$place

# A subvolume has this name until it has its limit. No PV has such a name.
aside=/export/$below/.new-$FLEX_PV_NAME

# On XFS what is in this directory has the project of the volume, which no other volume gets while
# it exists. Its number has 31 bits of the UID, or is the next one that nothing has.
project=/export/$below/.project-$FLEX_PV_NAME
uid=${FLEX_PV_NAME#pvc-}
first=$((16#${uid:0:8} | 1 << 31))

# With a limit below 128 KiB a subvolume cannot have one file: btrfs counts its own blocks.
size=$((${FLEX_SIZE:-0} < 1048576 ? 1048576 : FLEX_SIZE))

# need_quotas turns on the quotas of the server's btrfs, and looks for those of its XFS. Where there
# are none, nothing can be created, and an administrator reads why. A volume that exists is not lost
# then, only not mounted: its delete or its growth is tried again.
need_quotas() {
  local verdict=again
  [ "$1" != provision ] || verdict=misconfigured
  case $quota in
    btrfs)
      flex quota /export ||
        flex "$verdict" "the server's /export is not on btrfs:" \
          "an administrator has to mount one there"
      ;;
    xfs)
      mkdir -p "/export/$below"
      flex project "/export/$below" >/dev/null ||
        flex "$verdict" "no directory in the server's /export can have a limit of its own:" \
          "an administrator has to mount an XFS there with prjquota"
      ;;
  esac
}

# alone waits for what the other runs of the server change, and keeps them waiting until file 9 is
# closed. An earlier run that the kubelet has not ended yet would undo the work of this one.
alone() {
  exec 9</export
  flock -w 60 9 ||
    flex again "another run has been at work on the server for a minute;" \
      "the provisioner tries again"
}

# free_bytes prints how much room the server has: its free blocks, times their size.
free_bytes() {
  echo $(($(stat -f -c '%a*%S' /export)))
}

# need_room BYTES refuses what the server has no room for now. A limit reserves nothing.
need_room() {
  [ "$(free_bytes)" -ge "$1" ] || flex full "the server has less than $1 bytes free"
}

# is_subvolume reports whether the volume is one: any other directory has no limit of its own.
is_subvolume() {
  [ "$(stat -c %i "$dir")" = 256 ]
}

# limit BYTES DIR sets the limit of a subvolume by its number: one that is full refuses a limit by
# its name.
limit() {
  local id
  id=$(btrfs inspect-internal rootid "$2")
  btrfs qgroup limit "$1" "0/$id" /export
}

# create_subvolume gives it its limit before its name: no volume is without one, wherever a run was
# killed. What such a run has left aside is deleted by the next one, or by the delete.
create_subvolume() {
  need_room "$size"

  # There may be one of a run that was killed.
  flex empty "$aside"
  btrfs subvolume create "$aside"

  # The limit comes after the mode: it may leave no room for it.
  chmod "$mode" "$aside"
  limit "$size" "$aside"

  # From here on it is the volume.
  mv -T "$aside" "$dir"
}

# create_project does the same on XFS. What is created in a directory has its project, so the limit
# comes before the volume.
create_project() {
  need_room "$size"
  mkdir -p "$project"
  flex project "$project" "$first" "$size" >/dev/null
  mkdir -p "$project/volume"
  chmod "$mode" "$project/volume"
  mv -T "$project/volume" "$dir"
}

# provision creates the volume, and then the PV that names it.
provision() {
  # A delete needs no address, so these two keys are read here.
  flex need nfs-server nfs-path

  # A claim that cannot be served is refused first, so that nothing is left of it.
  [ "$FLEX_VOLUME_MODE" = Filesystem ] ||
    flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"

  # This may be the first volume below the class's directory.
  mkdir -p "/export/$below"

  case $quota in
    none)
      # An earlier run may have created it, and may have been killed before its mode was set.
      mkdir -p "$dir"
      chmod "$mode" "$dir"

      # Or a power cut could leave a PV without its directory.
      sync "/export/$below"
      ;;
    btrfs)
      # What has the volume's name is complete. Only one run at a time may look for it and create
      # it: of two, the second would delete what the first has aside.
      alone
      [ -d "$dir" ] || create_subvolume
      exec 9<&-

      # It may be of a time without quotas. A PV would promise a limit that it does not have.
      is_subvolume ||
        flex again "$FLEX_PV_NAME is a directory without a limit: an administrator must delete it"

      # Without this, a power cut could leave a PV without its volume.
      btrfs filesystem sync /export
      ;;
    xfs)
      alone
      [ -d "$dir" ] || create_project
      exec 9<&-
      [ -d "$project" ] ||
        flex again "$FLEX_PV_NAME is a directory without a limit: an administrator must delete it"
      sync -f /export
      ;;
  esac

  # The PV comes last, since a claim is bound to it at once: the directory must be there by then.
  local path=$FLEX_NFS_PATH/$place
  flex pv '{"spec":{"nfs":{"server":"'"$FLEX_NFS_SERVER"'","path":"'"$path"'"}}}'
}

# expand raises the limit of a subvolume, and never lowers it: an earlier run may have raised it to
# more.
expand() {
  # Without the volume there is nothing to grow, and nothing is created in its place.
  [ -d "$dir" ] || flex again "the volume does not exist: an administrator must look for it"

  # The limit of a directory would be the limit of all that is beside it.
  is_subvolume || flex misconfigured "$FLEX_PV_NAME is not a subvolume: it cannot grow"

  # The limit is read and raised under the lock. Otherwise an earlier run that is still at work
  # could lower what this one has raised.
  alone
  local now
  now=$(btrfs qgroup show -rf --raw "$dir" | awk '/^0\// { print $4 }')

  # It says "none" for a volume that was created while quotas were off.
  [[ $now =~ ^[0-9]+$ ]] || now=0
  if [ "$now" -lt "$size" ]; then
    need_room $((size - now))
    now=$size
    limit "$now" "$dir"
  fi

  # The limit is on the disk before the claim says the new size.
  btrfs filesystem sync /export
  flex grown "$now"
}

# expand_project does the same on XFS.
expand_project() {
  [ -d "$dir" ] || flex again "the volume does not exist: an administrator must look for it"
  [ -d "$project" ] ||
    flex misconfigured "$FLEX_PV_NAME is a directory without a limit: it cannot grow"
  alone
  local now
  now=$(flex project "$project")
  if [ "$now" -lt "$size" ]; then
    need_room $((size - now))
    now=$(flex project "$project" "$first" "$size")
  fi
  sync -f /export
  flex grown "$now"
}

# delete removes the volume, and what a run that was killed has left aside.
delete() {
  # A delete may come before the first provision, and must succeed then.
  mkdir -p "/export/$below"

  # Its pods may still write there. So no path is walked, and no link of a pod is followed.
  flex empty "$dir" "$aside"

  if [ "$quota" = btrfs ]; then
    # The delete is on the disk before the PV is deleted: nothing would repeat it after a power cut.
    btrfs filesystem sync /export

    # Groups of subvolumes that were deleted earlier are left where the kernel has not removed
    # them. If this fails, the next delete does it.
    btrfs qgroup clear-stale /export || true
  fi

  if [ "$quota" = xfs ]; then
    # The limit holds until nothing is left of the volume. No earlier run raises it afterwards.
    alone
    if [ -d "$project" ]; then
      flex project "$project" "$first" 0 >/dev/null
      flex empty "$project"
    fi
    exec 9<&-
    sync -f /export
  fi
}

[ "$quota" = none ] || need_quotas "$1"
case $1/$quota in
  provision/*) provision ;;
  expand/btrfs) expand ;;
  expand/xfs) expand_project ;;
  delete/*) delete ;;
  *)
    echo "this script supports the verbs provision and delete, and with quota: expand, not $1"
    exit 64
    ;;
esac
