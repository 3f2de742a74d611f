# shellcheck shell=sh
# Runs on a box with ZFS, for zfs-provisioner.sh. A volume is a data set below the parent, whose sharenfs it inherits.
set -eu
export LC_ALL=C # numbers and texts of programs are read; sshd gives a session the box's language
PATH=$PATH:/usr/sbin:/sbin # which sshd leaves out for other users than root
verb=$1 parent=$2 volume=$2/$3 size=$4 note=$5
end() { code=$1 && shift && echo "claim: $*" >&2 && exit "$code"; }
value() { zfs get -Hp -o value "$1" "$2"; }
room() { # BYTES
  available=$(value available "$parent")
  [ "$available" -ge "$1" ] || end 73 "the storage has no room for $size bytes: delete volumes, or ask its administrator for more"
}
if [ "$verb" != list ]; then # a run whose connection has ended may still be at work, and would undo what its successor does
  umask 077 # whoever can open the file can lock it
  exec 9>/run/flex-zfs
  flock -w 60 9 || end 75 "another run has been at work on the storage for a minute; the provisioner tries again"
fi
all=$(zfs list -H -d 1 -o name "$parent")
is_there() { printf '%s\n' "$all" | grep -qxF "$volume"; }
case $verb in
provision)
  if ! is_there; then
    room "$size"
    zfs create -o "refquota=$size" -o "refreservation=$size" -o "flex:note=$note" "$volume"
  fi
  # A data set that was created may not be mounted. What pods write would be in the parent, without a limit.
  [ "$(value mounted "$volume")" = yes ] || zfs mount "$volume"
  path=$(value mountpoint "$volume")
  chmod 0777 "$path" # pods write there as any user
  echo "$path"
  ;;
expand)
  now=$(value refquota "$volume")
  if [ "$now" -lt "$size" ]; then
    room $((size - now))
    zfs set "refquota=$size" "refreservation=$size" "$volume"
  fi
  value refquota "$volume"
  ;;
delete) ! is_there || zfs destroy -r "$volume" ;; # with the snapshots that a schedule may have made
list) zfs list -Hp -d 1 -o name,refquota,creation,flex:note "$parent" ;;
esac
