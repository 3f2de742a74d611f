# shellcheck shell=sh
# Runs on a Linux box with LVM and LIO, for lvm-provisioner.sh. A volume is a thin logical volume, a
# backstore of LIO on it, and a target with that as LUN 1. The tags of the logical volume are its
# note (flex.NOTE) and what it was created from (from.SOURCE).
#
# Arguments: the verb, the volume group, its thin pool, the names of the volume and of its target,
# the size in bytes, the source or none, the note. Input of provision: the password of the login.
# The answer: the size (expand), a line for each logical volume (list).
set -eu

# Numbers and messages of programs are read, and sshd gives a session the box's language.
export LC_ALL=C

# sshd leaves these out for other users than root.
PATH=$PATH:/usr/sbin:/sbin

verb=$1
group=$2
pool=$3
name=$4
iqn=$5
size=$6
from=$7
note=$8
lio=/sys/kernel/config/target
target=$lio/iscsi/$iqn/tpgt_1

# shellcheck source=on-box.sh
. "${0%/*}/on-box.sh"

# column FIELDS [VOLUME]: prints these of the claim's volume or of another, or nothing if there is
# no such volume. That the volume group cannot be read is a failure.
column() {
  lvs --noheadings --nosuffix --units b --select "lv_name=${2:-$name}" -o "$1" "$group"
}

# bytes prints the size of the claim's volume.
bytes() {
  column lv_size | tr -d ' '
}

# sectors prints the size that the claim requests as LVM takes it, in sectors of 512 bytes. LVM
# rounds it up to extents.
sectors() {
  echo "$(((size + 511) / 512))s"
}

# change COMMAND...: runs one that changes the group. A group whose metadata area is full takes no
# volume more, whatever room it has.
change() {
  code=0
  said=$("$@" 2>&1) || code=$?
  printf '%s\n' "$said" >&2
  case $code$said in
    0*)
      return
      ;;
    *"exceeds maximum metadata size"* | *"too large for circular buffer"*)
      end 73 "the metadata area of the storage's volume group is full ($1 ends with $code):" \
        "delete volumes, or ask its administrator for a group with a larger --metadatasize"
      ;;
  esac
  end 75 "the storage's $1 has failed with exit code $code; the provisioner tries again"
}

# grow gives the volume its size. It never shrinks one. This also concerns a clone to more than the
# size of its source.
grow() {
  now=$(bytes)
  [ "$now" -ge "$size" ] ||
    change lvextend --size "$(sectors)" "$group/$name"
}

# cli runs the commands of its input, since arguments can be seen. targetcli continues after an
# error, such as that a target exists, and succeeds. So a run may repeat all commands, and what they
# have made is read from LIO. targetcli prints the password.
cli() {
  said=$(targetcli 2>&1) && return
  printf '%s\n' "$said" | grep -v password | tail -n 1 >&2
  # It says no more than that it could not connect.
  case $said in
    *g-io-error-quark*)
      end 75 "the storage's targetcli cannot connect to D-Bus:" \
        "its administrator must install and start dbus"
      ;;
  esac
  end 75 "the storage's targetcli has failed; the provisioner tries again"
}

# unrestored prints the devices and targets that the saved configuration has and LIO does not,
# except the claim's own, which a killed run may have left. When the box starts, rtslib skips
# devices that are missing (restore in root.py). saveconfig writes what is there: the volumes of
# these devices would never have a LUN again.
unrestored() {
  saved=/etc/target/saveconfig.json
  # Debian has it elsewhere.
  [ ! -d /etc/rtslib-fb-target ] ||
    saved=/etc/rtslib-fb-target/saveconfig.json
  [ -e "$saved" ] || return 0

  # What LIO has, then an empty line, then what is saved: awk prints what is only below the line.
  {
    printf '%s\n' "/dev/$group/$name" "$iqn"
    ls "$lio/iscsi" || true
    for file in "$lio"/core/*/*/udev_path; do
      [ ! -e "$file" ] ||
        ! read -r device <"$file" ||
        printf '%s\n' "$device"
    done
    echo
    sed -n -e 's/^ *"dev": "\(.*\)",\{0,1\}$/\1/p' \
      -e 's/^ *"wwn": "\(iqn[.].*\)",\{0,1\}$/\1/p' "$saved"
  } | awk '
    !NF { saved = 1 }
    saved && NF && !($0 in there) { print }
    !saved { there[$0] }'
}

# must_be_restored ends a run that would save the configuration without all volumes of others.
must_be_restored() {
  lacking=$(unrestored)
  [ -n "$lacking" ] || return 0
  printf 'not restored:\n%s\n' "$lacking" >&2
  end 75 "the storage has not restored all volumes since it was started: its administrator" \
    "must activate its volume group, and then run targetctl restore"
}

# in_use: a node is logged in to the target.
in_use() {
  [ -n "$(cat "$target/dynamic_sessions" 2>/dev/null)" ]
}

# unexport deletes the target and its backstore, also from what the box restores when it starts.
unexport() {
  cli <<END
/iscsi delete $iqn
/backstores/block delete $name
saveconfig
END
}

# says VALUE FILE...: one of these files of LIO has a line with this value.
says() {
  value=$1
  shift
  grep -qxF -e "$value" "$@" 2>/dev/null
}

# fault prints why no node can use the target, or nothing.
fault() {
  [ "$(ls "$target/lun" 2>/dev/null)" = lun_1 ] ||
    echo "it has no LUN 1, or others"
  ! grep -qvxF "/dev/$group/$name" "$target"/lun/lun_1/*/udev_path 2>/dev/null ||
    echo "LUN 1 is another device"
  [ -n "$(ls "$target/np" 2>/dev/null)" ] ||
    echo "it has no portal: an administrator must let targetcli add one (auto_add_default_portal)"
  ! says 0 "$target/enable" ||
    echo "it is not enabled: an administrator must let targetcli do it (auto_enable_tpgt)"
  says 1 "$target/attrib/authentication" ||
    echo "it requires no login"
  [ "$(cat "$target/auth/password" 2>/dev/null)" = "$password" ] ||
    echo "it has another login"
  ! says 0 "$target/attrib/generate_node_acls" ||
    echo "it lets no node in"
  ! says 1 "$target/attrib/demo_mode_write_protect" ||
    echo "no node may write to it"
}

# must_have_room ends a run that would create a volume in a pool that is not thin, or that is used
# to nine tenths. The rest is for the volumes that exist: a thin volume takes its room when it is
# written. A pool that is not active does not say what is used of it. lvcreate activates it.
must_have_room() {
  used=$(lvs --noheadings --select "lv_name=$pool && segtype=thin-pool" \
    -o data_percent,metadata_percent "$group")
  [ -n "$used" ] ||
    misconfigured "$group/$pool is not a thin pool: create it, or correct the key pool"
  for percent in $used; do
    # Some boxes have a decimal comma.
    [ "${percent%%[.,]*}" -lt 90 ] ||
      end 73 "the storage has no room for $size bytes:" \
        "delete volumes, or ask its administrator for more"
  done
}

# create makes the logical volume with both its tags by one command, so that no run leaves a volume
# whose claim or source is unknown.
create() {
  must_have_room
  if [ "$from" = none ]; then
    change lvcreate --yes --thinpool "$pool" --virtualsize "$(sectors)" \
      --name "$name" --addtag "flex.$note" --addtag from.none "$group"
  else
    clone
  fi
}

# clone makes the logical volume as a snapshot of the source. Only a thin volume has snapshots
# without a size.
clone() {
  sizes=$(column lv_size,vg_extent_size "$from && segtype=thin")
  # shellcheck disable=SC2086 # two numbers, or nothing
  set -- $sizes
  [ $# = 2 ] ||
    end 65 "the storage cannot clone this source: it must be a volume of the same class"
  # The claim's size in whole extents, as LVM makes it.
  [ "$1" -le $(((size + $2 - 1) / $2 * $2)) ] ||
    end 65 "a clone cannot be smaller than its source: request at least $1 bytes"
  # By itself LVM would not activate a snapshot with its group.
  change lvcreate --yes --snapshot --setactivationskip n --name "$name" \
    --addtag "flex.$note" --addtag "from.$from" "$group/$from"
}

# must_be_from_source ends a run whose volume an earlier run has created from another source.
must_be_from_source() {
  tags=$(column lv_tags | tr -d ' ')
  case ,$tags, in
    *",from.$from,"*) ;;
    *)
      end 65 "the volume was created from another source:" \
        "delete the claim, and create another one"
      ;;
  esac
}

# activate gives the volume its device. After a reboot of the box a volume may be there and have
# none.
activate() {
  active=$(column lv_active | tr -d ' ')
  [ -n "$active" ] ||
    change lvchange --activate y --ignoreactivationskip "$group/$name"
}

# export_volume makes the target, also for the box's next start. A target lets no node in before
# generate_node_acls is set, and then only with the login. The disk comes last.
export_volume() {
  cli <<END
/backstores/block create name=$name dev=/dev/$group/$name
/iscsi create $iqn
/iscsi/$iqn/tpg1 set auth userid=$name password=$password
/iscsi/$iqn/tpg1 set attribute authentication=1
/iscsi/$iqn/tpg1 set attribute generate_node_acls=1 cache_dynamic_acls=1 demo_mode_write_protect=0
/iscsi/$iqn/tpg1/luns create /backstores/block/$name lun=1
saveconfig
END
}

# provision makes what is missing of the volume. Each step finds what an earlier run has done.
provision() {
  read -r password
  there=$(column lv_name)
  [ -n "$there" ] || create
  must_be_from_source

  # The backstore needs a device, which has the size of the claim.
  grow
  activate
  export_volume

  # targetcli does not say whether it has succeeded.
  wrong=$(fault)
  [ -n "$wrong" ] || return 0
  printf '%s\n' "$said" | grep -v password >&2
  # What exists would stay as it is in the next run, too. So that run has to make it anew.
  in_use || unexport
  end 75 "the storage has not created the target; the provisioner tries again:" "$wrong"
}

# expand makes the volume larger. LIO has the new size at once. A node that is logged in has to
# rescan.
expand() {
  grow
  bytes
}

# delete is in the order in which one thing uses the next: LIO holds the device while there is a
# backstore. A run that dies in between is repeated, and finds what is left.
delete() {
  ! in_use ||
    end 75 "a node is still logged in to the volume"
  unexport
  [ ! -d "$lio/iscsi/$iqn" ] ||
    end 75 "the storage has not deleted the target; the provisioner tries again"
  there=$(column lv_name)
  [ -z "$there" ] ||
    change lvremove --yes "$group/$name"
}

list() {
  lvs --noheadings --nosuffix --units b -o lv_name,lv_size,data_percent,lv_tags "$group"
}

# main runs the verb. It reads the group first: one that cannot be read is not one without volumes.
main() {
  missing=$(lvs --noheadings -o lv_name "$group" 2>&1 >/dev/null) || case $missing in
    *"Volume group \"$group\" not found"*)
      misconfigured "the box has no volume group $group: create it, or correct the key volume-group"
      ;;
    *)
      printf '%s\n' "$missing" >&2
      end 75 "the storage's volume group cannot be read; the provisioner tries again"
      ;;
  esac
  case $verb in
    provision | delete)
      # Both save the configuration.
      must_be_restored
      "$verb"
      ;;
    expand | list) "$verb" ;;
  esac
}

# A run whose connection has ended may still be at work, and would undo what its successor does. So
# each run takes the lock. Any user who can open the file can lock it.
umask 077
exec 9>/run/flex-lvm
flock -w 60 9 ||
  end 75 "another run has been at work on the storage for a minute; the provisioner tries again"

# This fails if the connection has ended meanwhile. Such a run has a successor, which does not know
# of it.
echo flex-on-box

# LVM warns of a file that it inherits, and what a program starts would keep the lock, so none
# inherits it.
main 9>&-
