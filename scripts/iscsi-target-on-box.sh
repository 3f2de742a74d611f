# shellcheck shell=sh
# Runs on a Linux box with tgt, for iscsi-target-provisioner.sh. A volume is a directory with the files disk, note and from.
set -eu
export LC_ALL=C # numbers and texts of programs are read; sshd gives a session the box's language
PATH=$PATH:/usr/sbin:/sbin # which sshd leaves out for other users than root
umask 077
verb=$1 volumes=$2 name=$3 iqn=$4 from=$6 volume=$2/$3 config=/etc/tgt/conf.d/$3.conf
size=$((($5 + 511) / 512 * 512)) # tgt exports whole sectors, and leaves out the rest of a file
end() { code=$1 && shift && echo "claim: $*" >&2 && exit "$code"; }
[ "$size" -ge "$5" ] || end 73 "the storage has no room for $5 bytes: request less" # rounded up it is too large for a number
look() { targets=$(tgtadm --lld iscsi --mode target --op show) || end 75 "the storage's tgtd does not answer; the provisioner tries again"; }
has() { look && printf '%s\n' "$targets" | sed -n "/: $iqn\$/,/^Target/p" | grep -q "$1"; } # of this target
in_use() { has "I_T nexus:"; }
# While a node is logged in, tgt-admin does nothing, and exits with 0. What it prints when it fails has the password in it.
admin() { tgt-admin "$1" "$iqn" >/dev/null 2>&1 || end 75 "the storage's tgt-admin $1 has failed; the provisioner tries again"; }
allocate() { # BYTES FILE
  [ "$1" -le "$(df --output=avail -B1 "$volumes" | tail -n 1)" ] ||
    end 73 "the storage has no room for $size bytes: delete volumes, or ask its administrator for more"
  fallocate -l "$size" "$2"
}

[ -d "$volumes" ] || { echo "there is no directory $volumes: create or mount it" >&2; exit 78; }
exec 9>"$volumes/.lock"
flock -w 60 9 || end 75 "another run has been at work on the storage for a minute; the provisioner tries again" # tgt-admin takes the first free number for a target
case $verb in
provision)
  read -r password && read -r note
  if [ ! -e "$volume/disk" ]; then
    mkdir -p "$volume"
    printf '%s\n' "$note" >"$volume/note"
    printf '%s\n' "$from" >"$volume/from"
    rm -f "$volume/part" # of an earlier run
    [ "$from" = none ] || cp --reflink=always "$volumes/$from/disk" "$volume/part" ||
      end 65 "the storage cannot clone this source: it must be a volume of the same class, on a file system with reflinks"
    [ "$from" = none ] || [ "$(stat -c %s "$volume/part")" -le "$size" ] || end 65 "a clone cannot be smaller than its source: request at least its size"
    allocate "$size" "$volume/part"
    mv "$volume/part" "$volume/disk"
  fi
  [ "$(cat "$volume/from")" = "$from" ] || end 65 "the volume was created from another source: delete the claim, and create another one"
  printf '<target %s>\n  backing-store %s\n  incominguser %s %s\n</target>\n' "$iqn" "$volume/disk" "$name" "$password" >"$config.part"
  mv "$config.part" "$config" # for tgt's next start, too
  admin --update
  has "path: $volume/disk\$" || end 75 "the storage has not created the target; the provisioner tries again"
  has "^  *$name\$" || end 75 "the target has no login; the provisioner tries again"
  ;;
expand)
  now=$(stat -c %s "$volume/disk")
  [ "$now" -ge "$size" ] || allocate $((size - now)) "$volume/disk"
  # Only when it creates a target, tgt reads the size of the file.
  ! in_use && admin --update && ! in_use && stat -c %s "$volume/disk" && exit 0
  end 75 "the volume is in use, and can grow when it is not: delete the pods that use it"
  ;;
delete)
  ! in_use || end 75 "a node is still logged in to the volume"
  admin --delete
  ! has "$iqn" || end 75 "the storage has not deleted the target; the provisioner tries again"
  rm -f "$config" "$config.part" "$volume/disk" "$volume/part" "$volume/from" "$volume/note"
  [ ! -d "$volume" ] || rmdir "$volume"
  ;;
list) for disk in "$volumes"/pvc-*/disk; do [ ! -e "$disk" ] || { stat -c %s "$disk" && cat "${disk%disk}note"; }; done ;;
esac
