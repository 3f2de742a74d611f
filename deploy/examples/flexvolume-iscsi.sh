#!/bin/bash
# flexvolume-iscsi.sh: a FlexVolume driver that mounts the volumes of the class in cinder-flexvolume.yaml with nothing but what the kubelet hands
# it. It is installed on every node as flex-provisioner.io~iscsi/iscsi in the kubelet's volume plugin directory; docs/cinder.md says how.
#   init               what the driver can do; the kubelet asks when it finds the driver
#   mount DIR OPTIONS  log in, make a file system on a blank disk, mount it at DIR. OPTIONS is JSON: the options of the PV, the content of its
#                      Secret, fsType, and whether the pod writes
#   unmount DIR        unmount it, and log out when no other pod on the node uses the volume
# Calls may be repeated, and may follow one that was killed.
# The answer is one object of JSON, and nothing else may be printed. The exit code is always 0: after any other the kubelet logs the whole call,
# and the password with it.
set -euo pipefail
umask 077
trap 'exit 0' EXIT

STATE=${FLEXVOLUME_ISCSI_STATE:-/run/flexvolume-iscsi} # mounts and sessions end with the machine, and so do the records of them
DISKS=${FLEXVOLUME_ISCSI_DISKS:-/dev/disk/by-path}

# Exit codes of iscsiadm.
SESSION_EXISTS=15 NO_RECORD=21

fail() {
  echo "$*" >&2
  exit 1
}

# accept CODE CMD...: run a command that may also end with CODE.
accept() {
  local code=$1 status=0
  shift
  "$@" || status=$?
  [ "$status" = 0 ] || [ "$status" = "$code" ] || return "$status"
}

# option NAME: an option of the PV or of the kubelet, or nothing.
option() { printf %s "$OPTIONS" | jq -r --arg name "$1" '.[$name] // "" | strings'; }

# secret NAME: a value of the PV's Secret, or nothing. jq's error about an invalid value contains the value, so it is discarded. iscsiadm writes the value into
# a file with a setting a line.
secret() {
  local text
  text=$(printf %s "$OPTIONS" | jq -r --arg name "kubernetes.io/secret/$1" '.[$name] // "" | @base64d' 2>/dev/null) ||
    fail "the Secret's $1 cannot be read"
  [[ $text != *[[:cntrl:]]* ]] || fail "the Secret's $1 has control characters"
  printf %s "$text"
}

# checked WHAT TEXT PATTERN: text of others becomes part of a command or of a path only if it matches.
checked() {
  [[ $2 =~ ^($3)$ ]] || fail "$1 must have the form $3: $2"
  echo "$2"
}

NAME='(iqn|eui|naa)\.[0-9A-Za-z.:_-]+'

read_options() {
  local id initiator access fstype
  PORTAL=$(checked target_portal "$(option target_portal)" '(\[[0-9A-Fa-f:]+\]|[0-9A-Za-z][0-9A-Za-z.-]*):[0-9]+')
  IQN=$(checked target_iqn "$(option target_iqn)" "$NAME")
  LUN=$(checked target_lun "$(option target_lun)" '[0-9]{1,3}')
  fstype=$(option kubernetes.io/fsType)
  FSTYPE=$(checked fsType "${fstype:-ext4}" 'ext4|xfs')
  POD_MODE=$(checked readwrite "$(option kubernetes.io/readwrite)" 'ro|rw')
  # The kubelet says what the pod may do, not what the PV says.
  access=$(option access_mode)
  DISK_MODE=$(checked access_mode "${access:-rw}" 'ro|rw')
  id=$(checked volume_id "$(option volume_id)" '[0-9a-f-]{36}')
  [[ $IQN == *"$id"* ]] || fail "$IQN serves several volumes: a logout would disconnect the others"
  initiator=$(option initiator_name)
  INITIATOR=${initiator:+$(checked initiator_name "$initiator" "$NAME")}
  IFACE=flex-$(hash_of "$IQN" "$PORTAL" | head -c 32)
  CHAP_USER=$(secret auth_username)
  CHAP_PASSWORD=$(secret auth_password)
  LOGIN=$(hash_of "$PORTAL" "$INITIATOR" "$CHAP_USER" "$CHAP_PASSWORD")
}

hash_of() { printf '%s\n' "$@" | sha256sum; }

# read_dir: which pod's volume this is. DIR is …/pods/POD/volumes/DRIVER/VOLUME.
read_dir() {
  local pod=${DIR%/volumes/*}
  VOLUME=$(checked "the volume's name" "${DIR##*/}" '[0-9a-z][0-9a-z.-]*')
  POD=$(checked "the pod's UID" "${pod##*/}" '[0-9a-z][0-9a-z-]*')
}

# own_target: one call at a time for a target at a portal. In its folder a record says that a pod uses it, the file login with what this driver has logged in,
# and the file opening that a login has begun.
own_target() {
  TARGET=$STATE/$IQN@$PORTAL
  mkdir -p "$TARGET"
  exec 9>"$TARGET/lock"
  flock 9
  RECORD=$TARGET/$POD.$VOLUME
}

# check_login: where a session exists, a login needs no password (ISCSI_ERR_SESS_EXISTS), so a session serves only who could open it. Any pod may have an inline
# volume of any target. Without this it got the disk of another's volume that was mounted on its node.
check_login() {
  if [ -e "$TARGET/login" ]; then
    [ "$(cat "$TARGET/login")" = "$LOGIN" ] || fail "another pod of this node uses the target with another login: delete that pod first"
  elif [ -e "$TARGET/opening" ]; then # a call was killed
    log_out
  fi
}

iscsi() { iscsiadm "$@" 9>&-; }
node() { iscsi -m node -T "$IQN" -p "$PORTAL" -I "$IFACE" "$@"; }
setting() { node -o update -n "$1" -v "$2"; }

# log_in: iscsiadm takes values from its arguments only. So does the kubelet, for its own iSCSI volumes. Sessions and records are of one interface
# (__iscsi_match_session in open-iscsi's usr/iscsi_util.c, iface_match in usr/iface.c). That of this driver is of a target at a portal, so that no spelling of the
# portal reaches what is the kubelet's plugin's.
log_in() {
  accept $SESSION_EXISTS iscsi -m iface -I "$IFACE" -o new
  [ -z "$INITIATOR" ] || iscsi -m iface -I "$IFACE" -o update -n iface.initiatorname -v "$INITIATOR"
  node -o new
  setting node.startup manual
  if [ -n "$CHAP_USER" ]; then
    setting node.session.auth.authmethod CHAP
    setting node.session.auth.username "$CHAP_USER"
    setting node.session.auth.password "$CHAP_PASSWORD"
  fi
  if [ -e "$TARGET/login" ]; then
    accept $SESSION_EXISTS node --login
    return
  fi
  touch "$TARGET/opening"
  node --login || { rm -f "$TARGET/opening"; return 1; }
  printf '%s\n' "$LOGIN" >"$TARGET/.login"
  mv "$TARGET/.login" "$TARGET/login"
  rm -f "$TARGET/opening"
}

# log_out: a session that this driver has not opened is another's.
log_out() {
  if [ -e "$TARGET/login" ] || [ -e "$TARGET/opening" ]; then
    accept $NO_RECORD node --logout
    rm -f "$TARGET/login" "$TARGET/opening"
  fi
  accept $NO_RECORD node -o delete
  accept $NO_RECORD iscsi -m iface -I "$IFACE" -o delete
}

# find_disk: the device that udev links by the path to it, without the brackets of IPv6.
find_disk() {
  local link end=$((SECONDS + 30))
  link=$DISKS/ip-${PORTAL//[][]/}-iscsi-$IQN-lun-$LUN
  until [ -e "$link" ]; do
    [ $SECONDS -lt $end ] || fail "the disk $link did not appear within 30 s after the login"
    sleep 0.2
  done
  DISK=$(readlink -f "$link")
}

# prepare_disk: before its first mount on this node. Only a disk that can be read, and on which there is nothing, gets a file system.
prepare_disk() {
  local found status=0
  head -c 1048576 "$DISK" >/dev/null
  found=$(blkid -p -s TYPE -s PTTYPE -o value "$DISK") || status=$?
  case $status:$found in
    2:) make_file_system ;;
    0:"$FSTYPE") [ "$DISK_MODE" = ro ] || check_file_system ;;
    0:*) fail "the disk has $found, not $FSTYPE: it is left unchanged" ;;
    *) fail "blkid cannot identify the content of the disk" ;;
  esac
}

make_file_system() {
  [ "$DISK_MODE" = rw ] || fail "the disk is blank, and exported read-only"
  case $FSTYPE in
    ext4) mkfs.ext4 -F -m 0 "$DISK" ;;
    xfs) mkfs.xfs "$DISK" ;;
  esac
}

# check_file_system: fsck says 4 and more if errors are left.
check_file_system() {
  local status=0
  fsck -a "$DISK" || status=$?
  [ $status -lt 4 ] || fail "fsck found errors on the disk that it could not correct"
}

mount_volume() {
  read_options
  own_target
  ! mountpoint -q "$DIR" || return 0
  check_login
  echo "$IFACE" >"$TARGET/.new"
  mv "$TARGET/.new" "$RECORD"
  log_in
  find_disk
  findmnt -n -S "$DISK" >/dev/null || prepare_disk
  mount -t "$FSTYPE" -o "$DISK_MODE" "$DISK" "$DIR"
  # Another pod may write to the same file system, which is then writable.
  [ "$POD_MODE" = rw ] || mount -o remount,bind,ro "$DIR"
}

# unmount_volume: the record is removed last, so that a call that was killed is continued by the next.
unmount_volume() {
  local record
  ! mountpoint -q "$DIR" || umount "$DIR"
  for record in "$STATE"/*/"$POD.$VOLUME"; do
    [ -e "$record" ] || continue
    TARGET=${record%/*}
    IQN=${TARGET##*/}
    PORTAL=${IQN#*@}
    IQN=${IQN%%@*}
    own_target
    read -r IFACE <"$record"
    used_by_others || log_out
    rm -f "$record"
  done
}

used_by_others() {
  local other
  for other in "$TARGET"/*; do
    case $other in
      "$TARGET/lock" | "$TARGET/login" | "$TARGET/opening" | "$RECORD") ;;
      *) return 0 ;;
    esac
  done
  return 1
}

answer() { jq -nc --arg status "$1" --arg message "${2:-}" '{status: $status, message: $message}'; }

init() {
  local tool
  for tool in jq iscsiadm blkid findmnt mountpoint flock; do
    type "$tool" >/dev/null 2>&1 || { printf '{"status":"Failure","message":"missing: %s"}\n' "$tool"; return; }
  done
  echo '{"status":"Success","capabilities":{"attach":false,"fsGroup":true,"supportsMetrics":true,"requiresFSResize":false}}'
}

# try FUNCTION: runs it with -e, which a condition would take away, and returns what it printed.
try() {
  set +e
  SAID=$(exec 2>&1; set -e; read_dir; "$1")
  STATUS=$?
  set -e
}

mount_or_log_out() {
  local why
  try mount_volume
  [ $STATUS != 0 ] || { answer Success; return; }
  why=$SAID
  try unmount_volume # the kubelet does not unmount what it has not mounted
  answer Failure "$(tail -c 500 <<<"$why")"
}

unmount() {
  try unmount_volume
  if [ $STATUS = 0 ]; then answer Success; else answer Failure "$(tail -c 500 <<<"$SAID")"; fi
}

DIR=${2:-} OPTIONS=${3:-}
case ${1:-} in
  init) init ;;
  mount) mount_or_log_out ;;
  unmount) unmount ;;
  *) answer 'Not supported' ;;
esac
