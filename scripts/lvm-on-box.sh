# shellcheck shell=sh
# Runs on a Linux box with LVM and LIO, for lvm-provisioner.sh. A volume is a thin logical volume, its target, and its backstore.
set -eu
export LC_ALL=C # numbers and texts of programs are read; sshd gives a session the box's language
PATH=$PATH:/usr/sbin:/sbin # which sshd leaves out for other users than root
verb=$1 group=$2 pool=$3 name=$4 iqn=$5 size=$6 from=$7 note=$8
lio=/sys/kernel/config/target
target=$lio/iscsi/$iqn/tpgt_1
end() { code=$1 && shift && echo "claim: $*" >&2 && exit "$code"; }
misconfigured() { echo "$*" >&2 && exit 78; }

# column FIELDS [VOLUME]: of the claim's volume or of another, or nothing. That the volume group
# cannot be read is a failure.
column() { lvs --noheadings --nosuffix --units b --select "lv_name=${2:-$name}" -o "$1" "$group"; }
bytes() { column lv_size | tr -d ' '; }

# change COMMAND...: runs one that changes the group. A group whose metadata area is full takes no
# volume more, whatever room it has.
change() {
  code=0
  said=$("$@" 2>&1) || code=$?
  printf '%s\n' "$said" >&2
  case $code$said in
    0*) return ;;
    *"exceeds maximum metadata size"* | *"too large for circular buffer"*)
      end 73 "the metadata area of the storage's volume group is full ($1 ends with $code):" \
        "delete volumes, or ask its administrator for a group with a larger --metadatasize"
      ;;
  esac
  end 75 "the storage's $1 has failed with exit code $code; the provisioner tries again"
}

# grow also concerns a clone to more than the size of its source. LVM takes sectors of 512 bytes,
# and rounds up to extents.
grow() {
  now=$(bytes)
  [ "$now" -ge "$size" ] || change lvextend --size "$(((size + 511) / 512))s" "$group/$name"
}

# cli runs the commands of its input, since arguments can be seen. targetcli continues after an
# error, such as that a target exists. It prints the password.
cli() {
  said=$(targetcli 2>&1) && return
  printf '%s\n' "$said" | grep -v password | tail -n 1 >&2
  end 75 "the storage's targetcli has failed; the provisioner tries again"
}

# unrestored prints the devices and targets that the saved configuration has and LIO does not,
# except the claim's own. When the box starts, rtslib skips devices that are missing (restore in
# root.py). saveconfig writes what is there: their volumes would never have a LUN again.
unrestored() {
  saved=/etc/target/saveconfig.json
  [ ! -d /etc/rtslib-fb-target ] || saved=/etc/rtslib-fb-target/saveconfig.json # Debian
  [ -e "$saved" ] || return 0
  {
    printf '%s\n' "/dev/$group/$name" "$iqn"
    ls "$lio/iscsi" || true
    for file in "$lio"/core/*/*/udev_path; do
      [ ! -e "$file" ] || ! read -r device <"$file" || printf '%s\n' "$device"
    done
    echo
    sed -n -e 's/^ *"dev": "\(.*\)",\{0,1\}$/\1/p' \
      -e 's/^ *"wwn": "\(iqn[.].*\)",\{0,1\}$/\1/p' "$saved"
  } | awk '!NF { saved = 1 } saved && NF && !($0 in there) { print } !saved { there[$0] }'
}

in_use() { [ -n "$(cat "$target/dynamic_sessions" 2>/dev/null)" ]; }

unexport() {
  cli <<END
/iscsi delete $iqn
/backstores/block delete $name
saveconfig
END
}

# says VALUE FILE...: one of these files of LIO has a line with this value.
says() { value=$1 && shift && grep -qxF -e "$value" "$@" 2>/dev/null; }

# fault prints why no node can use the target, or nothing.
fault() {
  [ "$(ls "$target/lun" 2>/dev/null)" = lun_1 ] || echo "it has no LUN 1, or others"
  ! grep -qvxF "/dev/$group/$name" "$target"/lun/lun_1/*/udev_path 2>/dev/null ||
    echo "LUN 1 is another device"
  [ -n "$(ls "$target/np" 2>/dev/null)" ] ||
    echo "it has no portal: an administrator must let targetcli add one (auto_add_default_portal)"
  ! says 0 "$target/enable" ||
    echo "it is not enabled: an administrator must let targetcli do it (auto_enable_tpgt)"
  says 1 "$target/attrib/authentication" || echo "it requires no login"
  [ "$(cat "$target/auth/password" 2>/dev/null)" = "$password" ] || echo "it has another login"
  ! says 0 "$target/attrib/generate_node_acls" || echo "it lets no node in"
  ! says 1 "$target/attrib/demo_mode_write_protect" || echo "no node may write to it"
}

create() {
  # A pool that is not active does not say what is used of it. lvcreate activates it.
  used=$(lvs --noheadings --select "lv_name=$pool && segtype=thin-pool" \
    -o data_percent,metadata_percent "$group")
  [ -n "$used" ] ||
    misconfigured "$group/$pool is not a thin pool: create it, or correct the key pool"
  for percent in $used; do
    [ "${percent%%[.,]*}" -lt 90 ] ||
      end 73 "the storage has no room for $size bytes:" \
        "delete volumes, or ask its administrator for more"
  done
  if [ "$from" = none ]; then
    change lvcreate --yes --thinpool "$pool" --virtualsize "$(((size + 511) / 512))s" \
      --name "$name" --addtag "flex.$note" --addtag from.none "$group"
    return
  fi
  # Only a thin volume has snapshots without a size.
  sizes=$(column lv_size,vg_extent_size "$from && segtype=thin")
  # shellcheck disable=SC2086 # two numbers, or nothing
  set -- $sizes
  [ $# = 2 ] || end 65 "the storage cannot clone this source: it must be a volume of the same class"
  [ "$1" -le $(((size + $2 - 1) / $2 * $2)) ] ||
    end 65 "a clone cannot be smaller than its source: request at least $1 bytes"
  change lvcreate --yes --snapshot --setactivationskip n --name "$name" \
    --addtag "flex.$note" --addtag "from.$from" "$group/$from"
}

provision() {
  read -r password
  there=$(column lv_name)
  [ -n "$there" ] || create
  tags=$(column lv_tags | tr -d ' ')
  case ,$tags, in
    *",from.$from,"*) ;;
    *)
      end 65 "the volume was created from another source:" \
        "delete the claim, and create another one"
      ;;
  esac
  grow
  # After a reboot of the box a volume may be there and have no device.
  active=$(column lv_active | tr -d ' ')
  [ -n "$active" ] || change lvchange --activate y --ignoreactivationskip "$group/$name"
  cli <<END
/backstores/block create name=$name dev=/dev/$group/$name
/iscsi create $iqn
/iscsi/$iqn/tpg1 set auth userid=$name password=$password
/iscsi/$iqn/tpg1 set attribute authentication=1
/iscsi/$iqn/tpg1 set attribute generate_node_acls=1 cache_dynamic_acls=1 demo_mode_write_protect=0
/iscsi/$iqn/tpg1/luns create /backstores/block/$name lun=1
saveconfig
END
  wrong=$(fault)
  [ -n "$wrong" ] || return 0
  printf '%s\n' "$said" | grep -v password >&2
  # The next run makes it anew.
  in_use || unexport
  end 75 "the storage has not created the target; the provisioner tries again:" "$wrong"
}

delete() {
  ! in_use || end 75 "a node is still logged in to the volume"
  unexport
  [ ! -d "$lio/iscsi/$iqn" ] ||
    end 75 "the storage has not deleted the target; the provisioner tries again"
  there=$(column lv_name)
  [ -z "$there" ] || change lvremove --yes "$group/$name"
}

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
      lacking=$(unrestored)
      if [ -n "$lacking" ]; then
        printf 'not restored:\n%s\n' "$lacking" >&2
        end 75 "the storage has not restored all volumes since it was started: its administrator" \
          "must activate its volume group, and then run targetctl restore"
      fi
      "$verb"
      ;;
    expand) # LIO has the new size at once; a node that is logged in has to rescan
      grow
      bytes
      ;;
    list) lvs --noheadings --nosuffix --units b -o lv_name,lv_size,lv_tags "$group" ;;
  esac
}

umask 077 # whoever can open the file can lock it
exec 9>/run/flex-lvm
flock -w 60 9 ||
  end 75 "another run has been at work on the storage for a minute; the provisioner tries again"
# This fails if the connection has ended meanwhile. Such a run has a successor, which does not know
# of it.
echo flex-on-box
main 9>&- # LVM warns of a file that it inherits, and what it starts would keep the lock
