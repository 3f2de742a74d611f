# shellcheck shell=sh
# Runs on a Linux box with LVM and LIO, for lvm-provisioner.sh. A volume is a thin logical volume, its target, and its backstore.
set -eu
export LC_ALL=C # numbers and texts of programs are read; sshd gives a session the box's language
PATH=$PATH:/usr/sbin:/sbin # which sshd leaves out for other users than root
verb=$1 group=$2 pool=$3 name=$4 iqn=$5 size=$6 from=$7 note=$8
lio=/sys/kernel/config/target target=$lio/iscsi/$iqn/tpgt_1
end() { code=$1 && shift && echo "claim: $*" >&2 && exit "$code"; }
# column FIELDS [VOLUME]: of the claim's volume or of another, or nothing. That the volume group cannot be read is a failure.
column() { lvs --noheadings --nosuffix --units b --select "lv_name=${2:-$name}" -o "$1" "$group"; }
bytes() { column lv_size | tr -d ' '; }
grow() { # also a clone to more than the size of its source. LVM takes sectors of 512 bytes, and rounds up to extents
  now=$(bytes)
  [ "$now" -ge "$size" ] || lvextend --size "$(((size + 511) / 512))s" "$group/$name" >&2
}
# The commands of targetcli come by its input, since arguments can be seen. It continues after an error, such as that a target exists.
cli() { targetcli >/dev/null 2>&1; }
umask 077 # whoever can open the file can lock it
exec 9>/run/flex-lvm
flock -w 60 9 || end 75 "another run has been at work on the storage for a minute; the provisioner tries again"
case $verb in
provision)
  read -r password
  there=$(column lv_name)
  if [ -z "$there" ]; then
    used=$(lvs --noheadings --select "lv_name=$pool" -o data_percent "$group") # its failure is not that there is no pool
    used=$(printf %s "$used" | tr -d ' ')
    case $used in "" | *[!0-9.]*) echo "$group/$pool is not a thin pool: create it, or correct the config" >&2; exit 78 ;; esac
    [ "${used%%.*}" -lt 90 ] || end 73 "the storage has no room for $size bytes: delete volumes, or ask its administrator for more"
    if [ "$from" = none ]; then
      lvcreate --yes --thinpool "$pool" --virtualsize "$(((size + 511) / 512))s" --name "$name" --addtag "flex.$note" --addtag from.none "$group"
    else
      sizes=$(column lv_size,vg_extent_size "$from")
      # shellcheck disable=SC2086 # two numbers, or nothing
      set -- $sizes
      [ $# = 2 ] || end 65 "the storage cannot clone this source: it must be a volume of the same class"
      [ "$1" -le $(((size + $2 - 1) / $2 * $2)) ] || end 65 "a clone cannot be smaller than its source: request at least $1 bytes"
      lvcreate --yes --snapshot --setactivationskip n --name "$name" --addtag "flex.$note" --addtag "from.$from" "$group/$from" ||
        end 65 "the storage cannot clone this source: it must be a volume of the same class"
    fi
  fi
  tags=$(column lv_tags)
  printf %s "$tags" | grep -q "\bfrom\.$from\b" || end 65 "the volume was created from another source: delete the claim, and create another one"
  grow
  cli <<END
/backstores/block create name=$name dev=/dev/$group/$name
/iscsi create $iqn
/iscsi/$iqn/tpg1 set auth userid=$name password=$password
/iscsi/$iqn/tpg1 set attribute authentication=1
/iscsi/$iqn/tpg1 set attribute generate_node_acls=1 cache_dynamic_acls=1 demo_mode_write_protect=0
/iscsi/$iqn/tpg1/luns create /backstores/block/$name lun=1
saveconfig
END
  [ "$(ls "$target/lun") $(cat "$target/attrib/authentication" "$target/auth/password")" = "lun_1 1
$password" ] || end 75 "the storage has not created the target; the provisioner tries again"
  ;;
expand) grow; bytes ;; # LIO has the new size at once; a node that is logged in has to rescan
delete)
  [ -z "$(cat "$target/dynamic_sessions" 2>/dev/null)" ] || end 75 "a node is still logged in to the volume"
  cli <<END
/iscsi delete $iqn
/backstores/block delete $name
saveconfig
END
  [ ! -d "$lio/iscsi/$iqn" ]
  there=$(column lv_name)
  [ -z "$there" ] || lvremove --yes "$group/$name"
  ;;
list) lvs --noheadings --nosuffix --units b -o lv_name,lv_size,lv_tags "$group" ;;
esac
