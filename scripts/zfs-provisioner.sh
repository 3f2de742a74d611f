#!/bin/bash
# A provisioner for a box with ZFS: a data set for each claim, which the box exports by NFS. zfs-on-box.sh runs on the box, over ssh,
# with names of the dispatcher and of the config.
set -euo pipefail
[ -n "${FLEX_CLAIM_UID:-}" ] || exec flex each 8 "$0" "$@" # a batch: this script again, for each request
# shellcheck source=box.sh
. "${0%/*}/box"
flex need nfs-server
names parent

# box VERB [SIZE NOTE]
box() { on_box "$1" "$FLEX_PARENT" "$name" "${2:-0}" "${3:-none}" </dev/null; }

provision() {
  [ "$FLEX_VOLUME_MODE" = Filesystem ] || flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  flex note "$work/note" # what an audit needs to know of the claim
  box provision "$FLEX_SIZE" "$(jq -r @base64 "$work/note")"
  flex pv "$(jq -nc --arg path "$(cat "$work/said")" '{spec: {nfs: {server: env.FLEX_NFS_SERVER, $path}}}')"
}

list() {
  box list
  jq -Rc 'split("\t") | select(.[3] != "-") | (.[3] | @base64d | fromjson)
    + {volume: .[0], size: (.[1] | tonumber), createdAt: (.[2] | tonumber | todate)}' "$work/said" >"$work/list"
  show_list
}

case $1 in
  provision | list) "$1" ;;
  expand) box expand "$FLEX_SIZE"; grown ;;
  delete)
    [ "${FLEX_LISTED_VOLUME:-$FLEX_PARENT/$name}" = "$FLEX_PARENT/$name" ] || flex again "the listed volume is not the claim's"
    box delete
    ;;
  *) echo "this image has no verb $1"; exit 64 ;;
esac
