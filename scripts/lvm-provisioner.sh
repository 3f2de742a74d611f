#!/bin/bash
# A provisioner for a Linux box with LVM: a thin logical volume for each claim, which the kernel's
# own iSCSI target, LIO, exports with a CHAP login.
#
# Config: box, volume-group, pool (a thin pool), iqn (the beginning of the targets' names), portal.
# Secret: key and known_hosts of ssh, chap (from which the logins are made). A program of its own
# runs on the box, over ssh, with names of the dispatcher and of the config. Promises: a volume has
# its note and its source from its first moment, and each run may die at any step: the next one
# finishes its work.
set -euo pipefail

# on_box_program prints the program that runs on the box.
on_box_program() {
  cat "${0%/*}/lvm-on-box.sh"
}

# shellcheck source=box.sh
. "${0%/*}/box.sh"
names volume-group pool iqn
iqn=$FLEX_IQN:$name

# box VERB [SIZE SOURCE NOTE]: runs the verb on the box. Its input is that of this function.
box() {
  local size=${2:-0}
  local from=${3:-none}
  local note=${4:-none}
  on_box "$1" "$FLEX_VOLUME_GROUP" "$FLEX_POOL" "$name" "$iqn" "$size" "$from" "$note"
}

provision() {
  local from note

  # What is wrong with the config or the claim is said before anything exists.
  qualified
  [[ $FLEX_IQN = iqn.*.*.* ]] ||
    flex misconfigured "the domain in the key iqn needs a dot," \
      "as iqn.2026-11.example.box has: $FLEX_IQN"
  refuse_many
  chap
  from=$(source_of_claim)

  # The note has what an audit needs to know of the claim. It is a tag of the volume. A tag of LVM
  # has at most 1,024 characters, of a small alphabet. Name and size are the volume's own.
  flex note "$work/note"
  note=$(jq -r 'del(.uid, .volume, .size) | @base64' "$work/note")

  # The password is input, since arguments can be seen.
  {
    cat "$work/password"
    echo
  } >"$work/input"
  box provision "$FLEX_SIZE" "$from" "$note" <"$work/input"

  # The PV is last, when the target exists. If this process dies before, the next run finds volume
  # and target by their names.
  iscsi_pv "$iqn"
}

expand() {
  box expand "$FLEX_SIZE" </dev/null
  grown
}

delete() {
  [ "${FLEX_LISTED_VOLUME:-$name}" = "$name" ] ||
    flex again "the listed volume is not the claim's"
  # The Secret is last: the box refuses while a node uses the volume. That node may have to log in
  # again.
  box delete </dev/null
  flex secret --delete
}

list() {
  box list </dev/null
  # A logical volume without a note is not of a claim. One that is not active does not say how many
  # percent of it are used. Some boxes have a decimal comma.
  jq -Rc '
    capture(
      "^ *(?<volume>pvc-(?<uid>[^ ]+)) +(?<size>[0-9]+)"
      + " +((?<percent>[0-9]+([.,][0-9]+)?) +)?(.*,)?flex[.](?<note>[A-Za-z0-9+/=]+)"
    ) |
    (.size | tonumber) as $size |
    (.note | @base64d | fromjson) + {uid, volume, size: $size}
    + if .percent then
        {used: (.percent | sub(","; ".") | tonumber * $size / 100 | floor)}
      else
        {}
      end
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
