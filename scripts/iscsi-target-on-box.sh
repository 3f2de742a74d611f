# shellcheck shell=sh
# Runs on a Linux box with tgt, for iscsi-target-provisioner.sh. A volume is a directory with the files disk, note and from.
set -eu
export LC_ALL=C # numbers and texts of programs are read; sshd gives a session the box's language
PATH=$PATH:/usr/sbin:/sbin # which sshd leaves out for other users than root
umask 077
verb=$1 volumes=$2 name=$3 iqn=$4 from=$6
volume=$volumes/$name
config=/etc/tgt/conf.d/$name.conf
size=$((($5 + 511) / 512 * 512)) # tgt exports whole sectors, and leaves out the rest of a file
end() { code=$1 && shift && echo "claim: $*" >&2 && exit "$code"; }
misconfigured() { echo "$*" >&2 && exit 78; }
[ "$size" -ge "$5" ] || end 73 "the storage has no room for $5 bytes: request less" # rounded up it is too large for a number

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
in_use() { has "I_T nexus:"; }

# While a node is logged in, tgt-admin does nothing, and exits with 0. What it prints when it fails has the password in it.
admin() { tgt-admin "$1" "$iqn" >/dev/null 2>&1 || end 75 "the storage's tgt-admin $1 has failed; the provisioner tries again"; }

has_login() {
  asked account
  printf '%s\n' "$answer" | grep -q "^  *$name\$"
}

# remove deletes the target, and then its login: a target without one would let every node in.
# tgt-admin deletes no login, and leaves one that exists as it is (process_options).
remove() {
  admin --delete
  ! has "$iqn" || end 75 "the storage has not deleted the target; the provisioner tries again"
  ! has_login || tgtadm --lld iscsi --mode account --op delete --user "$name"
  ! has_login || end 75 "the storage has not deleted the login; the provisioner tries again"
}

no_room() {
  end 73 "the storage has no room for $size bytes:" \
    "delete volumes, or ask its administrator for more"
}
room() { # BYTES
  available=$(df --output=avail -B1 "$volumes" | tail -n 1)
  [ "$1" -le "$available" ] || no_room
}

# reserve FILE: each block of it has room of its own. XFS takes room for a block of two files when
# one of them is written: if there is none, clone and source have I/O errors. funshare also reserves
# what the file has no block for. A step needs as much room as it is long, whatever it changes.
reserve() {
  [ "$(stat -f -c %T "$volumes")" = xfs ] || { fallocate -l "$size" "$1"; return; }
  at=0
  step=$((256 * 1048576))
  while [ "$at" -lt "$size" ]; do
    [ $((at + step)) -le "$size" ] || step=$((size - at))
    xfs_io -c "funshare $at $step" "$1" >&2 || return
    at=$((at + step))
  done
}

# clone makes the file clone, which a run that was killed may have left. It may take as long as
# copying the data.
clone() {
  if [ ! -e "$volume/clone" ]; then
    room "$size"
    cp --reflink=always "$volumes/$from/disk" "$volume/part" ||
      end 65 "the storage cannot clone this source: it must be a volume of the same class, on a file system with reflinks"
    [ "$(stat -c %s "$volume/part")" -le "$size" ] || {
      rm "$volume/part"
      end 65 "a clone cannot be smaller than its source: request at least its size"
    }
    mv "$volume/part" "$volume/clone"
  fi
  reserve "$volume/clone" || {
    rm "$volume/clone" # while it is there, its source has no room of its own, either
    no_room
  }
  mv "$volume/clone" "$volume/disk"
}

create() {
  # Later 78 would be wrong, since it says that nothing was made.
  [ "$from" = none ] || [ "$(stat -f -c %T "$volumes")" != xfs ] ||
    command -v xfs_io >/dev/null ||
    misconfigured "the box cannot reserve the room of a clone on XFS: install xfsprogs"
  mkdir -p "$volume"
  printf '%s\n' "$note" >"$volume/note"
  printf '%s\n' "$from" >"$volume/from"
  rm -f "$volume/part" # of an earlier run
  if [ "$from" != none ]; then
    clone
    return
  fi
  room "$size"
  fallocate -l "$size" "$volume/part"
  mv "$volume/part" "$volume/disk"
}

provision() {
  read -r password
  read -r note
  # A clone that was begun is of this source.
  [ ! -e "$volume/clone" ] || [ "$(cat "$volume/from")" = "$from" ] || rm "$volume/clone"
  [ -e "$volume/disk" ] || create
  [ "$(cat "$volume/from")" = "$from" ] ||
    end 65 "the volume was created from another source: delete the claim, and create another one"
  text=$(printf '<target %s>\n  backing-store %s\n  incominguser %s %s\n</target>' \
    "$iqn" "$volume/disk" "$name" "$password")
  # What is there as wanted is made anew, too: an earlier release wrote the file, and left a login
  # with another password.
  if in_use; then
    # The login of a target that is in use stays as it is.
    [ "$(cat "$config" 2>/dev/null)" = "$text" ] ||
      end 75 "a node is logged in to the volume with an earlier login: delete the pods that use it"
  else
    remove
    printf '%s\n' "$text" >"$config.part"
    mv "$config.part" "$config" # for tgt's next start, too
    admin --update
  fi
  has "path: $volume/disk\$" || end 75 "the storage has not created the target; the provisioner tries again"
  has "^  *$name\$" || end 75 "the target has no login; the provisioner tries again"
  has "^  *ALL\$" || end 75 "the target lets no node in; the provisioner tries again"
}

must_be_unused() {
  ! in_use ||
    end 75 "the volume is in use, and can grow when it is not: delete the pods that use it"
}

expand() {
  now=$(stat -c %s "$volume/disk")
  if [ "$now" -lt "$size" ]; then
    room $((size - now))
    fallocate -o "$now" -l $((size - now)) "$volume/disk"
  fi
  # Only when it creates a target, tgt reads the size of the file.
  must_be_unused
  admin --update
  must_be_unused # tgt-admin did nothing if a node has logged in meanwhile
  has "path: $volume/disk\$" ||
    end 75 "the storage has not created the target; the provisioner tries again"
  stat -c %s "$volume/disk"
}

delete() {
  ! in_use || end 75 "a node is still logged in to the volume"
  remove
  rm -f "$config" "$config.part"
  for file in disk part clone from note; do
    rm -f "$volume/$file"
  done
  [ ! -d "$volume" ] || rmdir "$volume"
}

list() {
  for disk in "$volumes"/pvc-*/disk; do
    [ -e "$disk" ] || continue
    stat -c %s "$disk"
    cat "${disk%disk}note"
  done
}

[ -d "$volumes" ] ||
  misconfigured "there is no directory $volumes: create or mount it, or correct the key directory"
exec 9>"$volumes/.lock" # tgt-admin takes the first free number for a target
flock -w 60 9 ||
  end 75 "another run has been at work on the storage for a minute; the provisioner tries again"
# This fails if the connection has ended meanwhile. Such a run has a successor, which does not know
# of it.
echo flex-on-box
case $verb in
  provision | expand | delete | list) "$verb" 9>&- ;; # what a program starts would keep the lock
esac
