#!/bin/bash
# A provisioner for a Linux box as a SAN: a file for each claim, which tgt exports by iSCSI with a
# CHAP login of its own.
#
# Config: box, directory (of the files), iqn (the beginning of the targets' names), portal. Secret:
# key and known_hosts of ssh, chap (from which the logins are made). A program of its own runs on
# the box, over ssh, with names of the dispatcher and of the config: no text of a user becomes a
# word of a shell. Promises: a volume has all its room from the start, and each run may die at any
# step: the next one finishes its work.
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
  local from

  # What is wrong with the config or the claim is said before anything exists.
  qualified
  refuse_many
  from=$(source_of_claim)
  chap

  # The note has what an audit needs to know of the claim. The password is input, since arguments
  # can be seen, and the note is, since it has names that users have chosen.
  flex note "$work/note"
  {
    cat "$work/password"
    echo
    jq -c --arg volume "$iqn" '. + {$volume}' "$work/note"
  } >"$work/input"
  on_box provision "$FLEX_DIRECTORY" "$name" "$iqn" "$FLEX_SIZE" "$from" <"$work/input"

  # The PV is last, when the target exists. If this process dies before, the next run finds file and
  # target by their names.
  iscsi_pv "$iqn"
}

expand() {
  on_box expand "$FLEX_DIRECTORY" "$name" "$iqn" "$FLEX_SIZE" none </dev/null
  grown
}

delete() {
  # An audit names the target that it has listed.
  [ "${FLEX_LISTED_VOLUME:-$iqn}" = "$iqn" ] ||
    flex again "the listed volume is not the claim's"
  # The Secret is last: the box refuses while a node uses the volume. That node may have to log in
  # again.
  on_box delete "$FLEX_DIRECTORY" "$name" "$iqn" 0 none </dev/null
  flex secret --delete
}

list() {
  # The box prints of each volume its size, and then its note.
  on_box list "$FLEX_DIRECTORY" none none 0 none </dev/null
  jq -c 'input as $note | $note + {size: .}' "$work/said" >"$work/list"
  show_list
}

case $1 in
  provision | expand | delete | list) "$1" ;;
  *)
    echo "this script has no verb $1"
    exit 64
    ;;
esac
