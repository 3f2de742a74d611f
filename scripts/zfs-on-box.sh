# shellcheck shell=sh
# Runs on a Linux box with ZFS, for zfs-provisioner.sh. A volume is a data set below the parent,
# whose sharenfs it inherits. The data set has all that a run has to know: refquota and
# refreservation are its size, and flex:note is its claim.
#
# Arguments: the verb, the parent, the name of the volume, its size in bytes, its note. The answer:
# the volume's path (provision), its size (expand), a line for each volume (list).
set -eu

# Numbers and messages of programs are read, and sshd gives a session the box's language.
export LC_ALL=C

# sshd leaves these out for other users than root.
PATH=$PATH:/usr/sbin:/sbin

verb=$1
parent=$2
volume=$2/$3
size=$4
note=$5

# shellcheck source=on-box.sh
. "${0%/*}/on-box.sh"

# value PROPERTY DATASET: prints it, sizes in bytes.
value() {
  zfs get -Hp -o value "$1" "$2"
}

# is_there: the claim has a data set.
is_there() {
  printf '%s\n' "$all" | grep -qxF "$volume"
}

# room BYTES: the parent has so much room, or the run ends.
room() {
  available=$(value available "$parent")
  [ "$available" -ge "$1" ] ||
    end 73 "the storage has no room for $size bytes:" \
      "delete volumes, or ask its administrator for more"
}

# grow gives the volume its size. The limit is first: if the box stops in between, the volume has
# more promised than reserved, and the next run reserves the rest.
grow() {
  limit=$(value refquota "$volume")
  if [ "$limit" -lt "$size" ]; then
    room $((size - limit))
    zfs set "refquota=$size" "$volume"
  fi
  reserved=$(value refreservation "$volume")
  if [ "$reserved" -lt "$size" ]; then
    room $((size - reserved))
    zfs set "refreservation=$size" "$volume"
  fi
}

# export_path PATH makes the box export a data set that is mounted. zfs create and zfs mount may
# have left it unexported, and what zfs says is not enough: it ignores that exportfs has failed, and
# without an NFS server it takes every data set for shared (nfs_is_shared of libzfs).
export_path() {
  said=$(zfs share "$volume" 2>&1) || case $said in
    *"already shared"*) ;;
    *)
      echo "$said" >&2
      end 75 "the storage does not export the volume by NFS; the provisioner tries again"
      ;;
  esac
  # A long path has a line of its own.
  exports=$(exportfs)
  printf '%s\n' "$exports" | grep -q "^$1\([[:space:]]\|\$\)" ||
    end 75 "the storage does not export the volume by NFS; the provisioner tries again"
}

# exports_volumes: the box is one whose data sets can be exported. Later misconfigured would be
# wrong, since it promises that nothing was made.
exports_volumes() {
  case $(value mountpoint "$parent") in
    /*) ;;
    *)
      misconfigured "the data set $parent has no mountpoint: set it, or correct the key parent"
      ;;
  esac
  [ "$(value sharenfs "$parent")" != off ] ||
    misconfigured "the data set $parent is not exported:" \
      "set its sharenfs, or correct the key parent"
  # zfs shares by this program.
  command -v exportfs >/dev/null ||
    misconfigured "the box has no exportfs: install nfs-kernel-server"
}

provision() {
  exports_volumes

  # One command creates the data set with its size and its note.
  if ! is_there; then
    room "$size"
    zfs create -o "refquota=$size" -o "refreservation=$size" -o "flex:note=$note" "$volume"
  fi

  # A box that stopped during the creation has a data set without its properties.
  [ "$(value flex:note "$volume")" != - ] ||
    zfs set "flex:note=$note" "$volume"
  grow

  # A data set that was created may not be mounted. What pods write would be in the parent, without
  # a limit.
  [ "$(value mounted "$volume")" = yes ] ||
    zfs mount "$volume"
  path=$(value mountpoint "$volume")

  # Pods write there as any user.
  chmod 0777 "$path"

  # The path is printed last: there is no PV before the box exports it.
  export_path "$path"
  echo "$path"
}

expand() {
  grow
  value refquota "$volume"
}

# delete also succeeds if an earlier run has deleted the data set. A schedule of the box may have
# made snapshots: -r deletes them, too.
delete() {
  is_there || return 0
  said=$(zfs destroy -r "$volume" 2>&1) || case $said in
    *busy*)
      echo "$said" >&2
      end 75 "a node still has files of the volume open; the provisioner tries again"
      ;;
    *)
      echo "$said" >&2
      exit 1
      ;;
  esac
}

list() {
  zfs list -Hp -d 1 -o name,refquota,creation,referenced,flex:note "$parent"
}

# main runs the verb. It reads the parent first: a parent that cannot be read is not one without
# data sets, and delete would take the volume for deleted.
main() {
  all=$(zfs list -H -d 1 -o name "$parent" 2>&1) || case $all in
    *"dataset does not exist"*)
      misconfigured "the box has no data set $parent:" \
        "import its pool or create it, or correct the key parent"
      ;;
    *)
      printf '%s\n' "$all" >&2
      end 75 "the storage cannot be read; the provisioner tries again"
      ;;
  esac
  case $verb in
    provision | expand | delete | list) "$verb" ;;
  esac
}

# A run whose connection has ended may still be at work, and would undo what its successor does. So
# each run that changes something takes the lock.
if [ "$verb" != list ]; then
  # Any user who can open the file can lock it.
  umask 077
  exec 9>/run/flex-zfs
  flock -w 60 9 ||
    end 75 "another run has been at work on the storage for a minute; the provisioner tries again"

  # This fails if the connection has ended meanwhile. Such a run has a successor, which does not
  # know of it.
  echo flex-on-box
fi

# What a program starts would keep the lock, so none inherits it.
main 9>&-
