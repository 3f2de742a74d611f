# shellcheck shell=sh
# Runs on a Linux box with ZFS, for zfs-provisioner.sh. A volume is a data set below the parent, whose sharenfs it inherits.
set -eu
export LC_ALL=C # numbers and texts of programs are read; sshd gives a session the box's language
PATH=$PATH:/usr/sbin:/sbin # which sshd leaves out for other users than root
verb=$1 parent=$2 volume=$2/$3 size=$4 note=$5
end() { code=$1 && shift && echo "claim: $*" >&2 && exit "$code"; }
misconfigured() { echo "$*" >&2 && exit 78; }
value() { zfs get -Hp -o value "$1" "$2"; }
is_there() { printf '%s\n' "$all" | grep -qxF "$volume"; }

room() { # BYTES
  available=$(value available "$parent")
  [ "$available" -ge "$1" ] ||
    end 73 "the storage has no room for $size bytes:" \
      "delete volumes, or ask its administrator for more"
}

# grow also completes a volume whose last run has set the limit, and has reserved nothing.
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
  exports=$(exportfs)
  printf '%s\n' "$exports" | grep -q "^$1\([[:space:]]\|\$\)" ||
    end 75 "the storage does not export the volume by NFS; the provisioner tries again"
}

provision() {
  case $(value mountpoint "$parent") in
    /*) ;;
    *) misconfigured "the data set $parent has no mountpoint: set it, or correct the key parent" ;;
  esac
  [ "$(value sharenfs "$parent")" != off ] ||
    misconfigured "the data set $parent is not exported: set its sharenfs, or correct the key parent"
  # zfs shares by this program. Later 78 would be wrong, since it says that nothing was made.
  command -v exportfs >/dev/null ||
    misconfigured "the box has no exportfs: install nfs-kernel-server"
  if ! is_there; then
    room "$size"
    zfs create -o "refquota=$size" -o "refreservation=$size" -o "flex:note=$note" "$volume"
  fi
  # A box that stops between has a data set without its properties.
  [ "$(value flex:note "$volume")" != - ] || zfs set "flex:note=$note" "$volume"
  grow
  # A data set that was created may not be mounted. What pods write would be in the parent, without a limit.
  [ "$(value mounted "$volume")" = yes ] || zfs mount "$volume"
  path=$(value mountpoint "$volume")
  chmod 0777 "$path" # pods write there as any user
  export_path "$path"
  echo "$path"
}

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
    provision) provision ;;
    expand)
      grow
      value refquota "$volume"
      ;;
    delete) ! is_there || zfs destroy -r "$volume" ;; # with the snapshots that a schedule may have made
    list) zfs list -Hp -d 1 -o name,refquota,creation,flex:note "$parent" ;;
  esac
}

# A run whose connection has ended may still be at work, and would undo what its successor does.
if [ "$verb" != list ]; then
  umask 077 # whoever can open the file can lock it
  exec 9>/run/flex-zfs
  flock -w 60 9 ||
    end 75 "another run has been at work on the storage for a minute; the provisioner tries again"
  # This fails if the connection has ended meanwhile. Such a run has a successor, which does not
  # know of it.
  echo flex-on-box
fi
main 9>&- # what a program starts would keep the lock
