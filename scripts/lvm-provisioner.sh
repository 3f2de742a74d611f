#!/bin/bash
# A provisioner for a Linux box with LVM: a thin logical volume for each claim, exported by the kernel's own iSCSI target, LIO, with a
# CHAP login. lvm-on-box.sh runs on the box, over ssh, with names of the dispatcher and of the config.
set -euo pipefail
[ -n "${FLEX_CLAIM_UID:-}" ] || exec flex each 8 "$0" "$@" # a batch: this script again, for each request
# shellcheck source=box.sh
. "${0%/*}/box"
names volume-group pool iqn
iqn=$FLEX_IQN:$name

# box VERB [SIZE SOURCE NOTE]
box() { on_box "$1" "$FLEX_VOLUME_GROUP" "$FLEX_POOL" "$name" "$iqn" "${2:-0}" "${3:-none}" "${4:-none}"; }

provision() {
  qualified
  [[ $FLEX_IQN = iqn.*.*.* ]] ||
    flex misconfigured "the domain in the key iqn needs a dot, as iqn.2026-11.example.box has: $FLEX_IQN"
  refuse_many
  chap
  flex note "$work/note"
  from=$(source_of_claim)
  # A tag of LVM has at most 1,024 characters, of a small alphabet. Name and size are the volume's own.
  note=$(jq -r 'del(.uid, .volume, .size) | @base64' "$work/note")
  { cat "$work/password" && echo; } >"$work/input"
  box provision "$FLEX_SIZE" "$from" "$note" <"$work/input"
  iscsi_pv "$iqn"
}

list() {
  box list </dev/null
  jq -Rc 'capture("^ *(?<volume>pvc-(?<uid>[^ ]+)) +(?<size>[0-9]+) +(.*,)?flex[.](?<note>[A-Za-z0-9+/=]+)")
    | (.note | @base64d | fromjson) + {uid, volume, size: (.size | tonumber)}' "$work/said" >"$work/list"
  show_list
}

case $1 in
  provision | list) "$1" ;;
  expand) box expand "$FLEX_SIZE" </dev/null; grown ;;
  delete)
    [ "${FLEX_LISTED_VOLUME:-$name}" = "$name" ] || flex again "the listed volume is not the claim's"
    box delete </dev/null
    flex secret --delete
    ;;
  *) echo "this image has no verb $1"; exit 64 ;;
esac
