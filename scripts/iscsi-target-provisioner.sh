#!/bin/bash
# A provisioner for a Linux box as a SAN: tgt exports a file for each claim, with a CHAP login of its own. iscsi-target-on-box.sh
# runs on the box, over ssh, with names of the dispatcher and of the config. No text of a user becomes a word of a shell.
set -euo pipefail
# on_box_program prints the program that runs on the box.
on_box_program() {
  cat "${0%/*}/iscsi-target-on-box.sh"
}
# shellcheck source=box.sh
. "${0%/*}/box.sh"
names directory iqn
iqn=$FLEX_IQN:$name

provision() {
  qualified
  refuse_many
  from=$(source_of_claim)
  chap
  flex note "$work/note" # what an audit needs to know of the claim
  { cat "$work/password" && echo && jq -c --arg volume "$iqn" '. + {$volume}' "$work/note"; } >"$work/input"
  on_box provision "$FLEX_DIRECTORY" "$name" "$iqn" "$FLEX_SIZE" "$from" <"$work/input"
  iscsi_pv "$iqn"
}

case $1 in
  provision) provision ;;
  expand) on_box expand "$FLEX_DIRECTORY" "$name" "$iqn" "$FLEX_SIZE" none </dev/null; grown ;;
  delete)
    [ "${FLEX_LISTED_VOLUME:-$iqn}" = "$iqn" ] || flex again "the listed volume is not the claim's"
    on_box delete "$FLEX_DIRECTORY" "$name" "$iqn" 0 none </dev/null
    flex secret --delete
    ;;
  list)
    on_box list "$FLEX_DIRECTORY" none none 0 none </dev/null # prints of each its size and its note
    jq -c 'input as $note | $note + {size: .}' "$work/said" >"$work/list"
    show_list
    ;;
  *) echo "this image has no verb $1"; exit 64 ;;
esac
