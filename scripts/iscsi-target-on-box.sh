# shellcheck shell=sh
# Runs on a Linux box with tgt, for iscsi-target-provisioner.sh. A volume is a directory with the
# files disk, note and from (what disk was created from), and a target with a login of its name.
# The disk has its name only when it is whole: part becomes disk, and of a clone part becomes clone,
# and clone becomes disk.
#
# Arguments: the verb, the directory of the volumes, the names of the volume and of its target, the
# size in bytes, the source or none. Input of provision: the password of the login, and the note,
# one a line. The answer: the size (expand), two lines for each volume (list).
set -eu

# Numbers and messages of programs are read, and sshd gives a session the box's language.
export LC_ALL=C

# sshd leaves these out for other users than root.
PATH=$PATH:/usr/sbin:/sbin

# The files are root's alone: they have data of users, and passwords.
umask 077

verb=$1
volumes=$2
name=$3
iqn=$4
from=$6
volume=$volumes/$name
config=/etc/tgt/conf.d/$name.conf

# tgt exports whole sectors, and leaves out the rest of a file.
size=$((($5 + 511) / 512 * 512))

# shellcheck source=on-box.sh
. "${0%/*}/on-box.sh"

# asked MODE: writes what tgtd has of targets or accounts to answer.
asked() {
  answer=$(tgtadm --lld iscsi --mode "$1" --op show) ||
    end 75 "the storage's tgtd does not answer; the provisioner tries again"
}

# has PATTERN: tgtd's own view of this target has such a line.
has() {
  asked target
  printf '%s\n' "$answer" | sed -n "/: $iqn\$/,/^Target/p" | grep -q "$1"
}

# in_use: a node is logged in to the target.
in_use() {
  has "I_T nexus:"
}

# has_login: tgtd has a login of this name, whether or not a target uses it.
has_login() {
  asked account
  printf '%s\n' "$answer" | grep -q "^  *$name\$"
}

# admin OPTION: runs tgt-admin for this target. What it prints when it fails has the password in it.
# While a node is logged in, it does nothing, and exits with 0: its callers ask tgtd what is there.
admin() {
  tgt-admin "$1" "$iqn" >/dev/null 2>&1 ||
    end 75 "the storage's tgt-admin $1 has failed; the provisioner tries again"
}

# remove deletes the target, and then its login: a target without one would let every node in.
# tgt-admin deletes no login, and leaves one that exists as it is (process_options).
remove() {
  admin --delete
  ! has "$iqn" ||
    end 75 "the storage has not deleted the target; the provisioner tries again"
  ! has_login ||
    tgtadm --lld iscsi --mode account --op delete --user "$name"
  ! has_login ||
    end 75 "the storage has not deleted the login; the provisioner tries again"
}

no_room() {
  end 73 "the storage has no room for $size bytes:" \
    "delete volumes, or ask its administrator for more"
}

# room BYTES: the directory has so much room, or the run ends.
room() {
  available=$(df --output=avail -B1 "$volumes" | tail -n 1)
  [ "$1" -le "$available" ] || no_room
}

# reserve FILE: each block of it has room of its own. XFS takes room for a block of two files when
# one of them is written: if there is none, clone and source have I/O errors. funshare also reserves
# what the file has no block for. A step needs as much room as it is long, whatever it changes.
reserve() {
  if [ "$(stat -f -c %T "$volumes")" != xfs ]; then
    fallocate -l "$size" "$1"
    return
  fi
  at=0
  step=$((256 * 1048576))
  while [ "$at" -lt "$size" ]; do
    [ $((at + step)) -le "$size" ] ||
      step=$((size - at))
    xfs_io -c "funshare $at $step" "$1" >&2 || return
    at=$((at + step))
  done
}

# clone makes the disk from that of the source. A run that was killed may have left the file clone,
# which has all the data: only room is reserved then, which may take as long as copying the data.
clone() {
  if [ ! -e "$volume/clone" ]; then
    room "$size"
    cp --reflink=always "$volumes/$from/disk" "$volume/part" ||
      end 65 "the storage cannot clone this source: it must be a volume of the same class," \
        "on a file system with reflinks"
    # The size is judged by the file: the source may have grown until it was copied.
    if ! [ "$(stat -c %s "$volume/part")" -le "$size" ]; then
      rm "$volume/part"
      end 65 "a clone cannot be smaller than its source: request at least its size"
    fi
    mv "$volume/part" "$volume/clone"
  fi
  if ! reserve "$volume/clone"; then
    # While it is there, its source has no room of its own, either.
    rm "$volume/clone"
    no_room
  fi
  mv "$volume/clone" "$volume/disk"
}

# create makes the volume's files. The disk is last: a run that dies before is repeated from the
# start, except for a clone that is whole.
create() {
  # This is before anything is made: 78 promises that nothing was.
  if [ "$from" != none ] && [ "$(stat -f -c %T "$volumes")" = xfs ]; then
    command -v xfs_io >/dev/null ||
      misconfigured "the box cannot reserve the room of a clone on XFS: install xfsprogs"
  fi
  mkdir -p "$volume"
  printf '%s\n' "$note" >"$volume/note"
  printf '%s\n' "$from" >"$volume/from"

  # An earlier run may have left it, of any length.
  rm -f "$volume/part"
  if [ "$from" != none ]; then
    clone
    return
  fi
  room "$size"
  fallocate -l "$size" "$volume/part"
  mv "$volume/part" "$volume/disk"
}

# export_disk makes the target and its login anew, whatever is there: an earlier release wrote the
# file, and left a login with another password. The file is first, and replaced as a whole: tgt
# reads it at each of its starts.
export_disk() {
  remove
  printf '%s\n' "$text" >"$config.part"
  mv "$config.part" "$config"
  admin --update
}

# provision makes what is missing of the volume. Each step finds what an earlier run has done.
provision() {
  read -r password
  read -r note

  # A clone that was begun is of this source, or is begun anew.
  [ ! -e "$volume/clone" ] ||
    [ "$(cat "$volume/from")" = "$from" ] ||
    rm "$volume/clone"
  [ -e "$volume/disk" ] || create
  [ "$(cat "$volume/from")" = "$from" ] ||
    end 65 "the volume was created from another source: delete the claim, and create another one"

  text=$(printf '<target %s>\n  backing-store %s\n  incominguser %s %s\n</target>' \
    "$iqn" "$volume/disk" "$name" "$password")
  if in_use; then
    # The login of a target that is in use stays as it is.
    [ "$(cat "$config" 2>/dev/null)" = "$text" ] ||
      end 75 "a node is logged in to the volume with an earlier login: delete the pods that use it"
  else
    export_disk
  fi

  # tgt-admin does not say whether it has succeeded.
  has "path: $volume/disk\$" ||
    end 75 "the storage has not created the target; the provisioner tries again"
  has "^  *$name\$" ||
    end 75 "the target has no login; the provisioner tries again"
  has "^  *ALL\$" ||
    end 75 "the target lets no node in; the provisioner tries again"

  # Or a power cut could leave a PV whose target, note or source is empty.
  sync -f "$volume/note" "$config"
}

must_be_unused() {
  ! in_use ||
    end 75 "the volume is in use, and can grow when it is not: delete the pods that use it"
}

# expand makes the file longer, and then the target anew: only when it creates a target, tgt reads
# the size of the file. If the process dies in between, the next run creates the target.
expand() {
  now=$(stat -c %s "$volume/disk")
  if [ "$now" -lt "$size" ]; then
    room $((size - now))
    fallocate -o "$now" -l $((size - now)) "$volume/disk"
  fi

  # It is asked twice, since tgt-admin did nothing if a node has logged in meanwhile.
  must_be_unused
  admin --update
  must_be_unused
  has "path: $volume/disk\$" ||
    end 75 "the storage has not created the target; the provisioner tries again"
  stat -c %s "$volume/disk"
}

# delete is in the order in which one thing uses the next: no node can log in to a target whose file
# is being deleted. A run that dies in between is repeated, and each step succeeds where nothing is
# left.
delete() {
  ! in_use ||
    end 75 "a node is still logged in to the volume"
  remove
  rm -f "$config" "$config.part"
  for file in disk part clone from note; do
    rm -f "$volume/$file"
  done
  [ ! -d "$volume" ] ||
    rmdir "$volume"
}

list() {
  for disk in "$volumes"/pvc-*/disk; do
    [ -e "$disk" ] || continue
    stat -c %s "$disk"
    cat "${disk%disk}note"
  done
}

# Rounded up, such a size is too large for a number of this shell.
[ "$size" -ge "$5" ] ||
  end 73 "the storage has no room for $5 bytes: request less"
[ -d "$volumes" ] ||
  misconfigured "there is no directory $volumes: create or mount it, or correct the key directory"

# A run whose connection has ended may still be at work, and would undo what its successor does.
# And tgt-admin takes the first free number for a target. So each run takes the lock.
exec 9>"$volumes/.lock"
flock -w 60 9 ||
  end 75 "another run has been at work on the storage for a minute; the provisioner tries again"

# This fails if the connection has ended meanwhile. Such a run has a successor, which does not know
# of it.
echo flex-on-box

# What a program starts would keep the lock, so none inherits it.
case $verb in
  provision | expand | delete | list) "$verb" 9>&- ;;
esac
