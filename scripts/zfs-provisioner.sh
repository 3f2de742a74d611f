#!/bin/bash
# A provisioner for a box with ZFS: a data set for each claim, which the box exports by NFS.
#
# Config: box, parent (the data set that has those of the claims), nfs-server. Secret: key and
# known_hosts of ssh. A program of its own runs on the box, over ssh, with names of the dispatcher
# and of the config. Promises: a volume has its size reserved and its note from its first moment,
# and each run may die at any step: the next one finishes its work.
set -euo pipefail

# on_box_program prints the program that runs on the box.
on_box_program() {
  cat "${0%/*}/zfs-on-box.sh"
}

# shellcheck source=box.sh
. "${0%/*}/box.sh"
flex need nfs-server
names parent

# box VERB [SIZE NOTE]: runs the verb on the box.
box() {
  local size=${2:-0}
  local note=${3:-none}
  on_box "$1" "$FLEX_PARENT" "$name" "$size" "$note" </dev/null
}

provision() {
  # A claim that no volume can serve is refused before anything exists.
  [ "$FLEX_VOLUME_MODE" = Filesystem ] ||
    flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"

  # The note has what an audit needs to know of the claim. The data set is created with it, so that
  # no run leaves a volume whose claim an audit cannot name.
  flex note "$work/note"
  box provision "$FLEX_SIZE" "$(jq -r @base64 "$work/note")"

  # The PV is last, when the box exports the path that it has printed. If this process dies before,
  # the next run finds the data set by its name.
  flex pv "$(jq -nc --arg path "$(cat "$work/said")" '
    {spec: {nfs: {server: env.FLEX_NFS_SERVER, $path}}}')"
}

expand() {
  box expand "$FLEX_SIZE"
  grown
}

delete() {
  # An audit names the volume that it has listed. It is of another parent if the config has changed.
  [ "${FLEX_LISTED_VOLUME:-$FLEX_PARENT/$name}" = "$FLEX_PARENT/$name" ] ||
    flex again "the listed volume is not the claim's"
  box delete
}

list() {
  box list
  # A data set without a note is not of a claim. Its limit counts what it refers to. What ZFS says
  # is used includes the reservation.
  jq -Rc '
    split("\t") |
    select(.[4] != "-") |
    (.[4] | @base64d | fromjson)
    + {volume: .[0], size: (.[1] | tonumber), createdAt: (.[2] | tonumber | todate)}
    + {used: (.[3] | tonumber)}
    ' "$work/said" >"$work/list"
  show_list
}

case $1 in
  provision | expand | delete | list) "$1" ;;
  *)
    echo "this script has no verb $1"
    exit 64
    ;;
esac
