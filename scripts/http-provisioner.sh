#!/bin/bash
# A provisioner for a storage with a REST API: the script to copy for an appliance, whose paths,
# bodies and fields are in read_volumes and below. It serves volumes by NFS.
#
# Config: api (the URL of the API), answer-timeout (seconds; 30). Secret: header (a file with the
# login, as a line of HTTP), ca.crt for https. No text of a user becomes part of a URL, and of the
# storage's only an ID: any other text could lead to what is beside the volumes. Promises: a request
# may be made twice, and each run may die at any step: the next one finds what the storage has.
set -euo pipefail

# Patterns and numbers must not depend on a language.
export LC_ALL=C

# In KiB. A storage may answer without an end, and would fill the node's disk before the kubelet
# sees it.
ulimit -f 32768

secret=/etc/flex/secret
work=$(mktemp -d)

# yes: the storage may have done what was asked. 77 and 78 promise that nothing was made.
lost=''

# yes: this is an expand. 73 promises that nothing has grown.
grows=''

# For https. curl trusts this file in place of the CAs that flex-shell has in one. In another image
# it would trust those with hashed names in /etc/ssl/certs as well.
export CURL_CA_BUNDLE=$secret/ca.crt

# A Secret or config that is wrong stays so until an administrator corrects it.
[ -s $secret/header ] || flex misconfigured "the Secret lacks the file header, or it is empty"
flex need api
[[ $FLEX_API =~ ^https?://[^[:space:]?#]+$ ]] ||
  flex misconfigured "the key api must begin with https:// or http://, without a blank, ? or #"
[[ ${FLEX_ANSWER_TIMEOUT:=30} =~ ^[1-9][0-9]{0,3}$ ]] ||
  flex misconfigured "answer-timeout is $FLEX_ANSWER_TIMEOUT: it must be seconds, such as 30"

# ask METHOD PATH [BODY [HEADER]]: sets status, and writes the answer to files. A change without an
# answer may have been made, and is repeated: each must be one that the storage recognizes.
ask() {
  local ended pause
  for pause in 1 2 0; do
    ended=0
    # An earlier answer must not pass for this one.
    : >"$work/answer"
    # curl reads the login from the file: arguments can be seen.
    status=$(curl --silent --show-error --globoff --connect-timeout 5 \
      --max-time "$FLEX_ANSWER_TIMEOUT" --request "$1" --header "@$secret/header" \
      --header "Content-Type: application/json" ${4:+--header "$4"} ${3:+--data "$3"} \
      --output "$work/answer" --dump-header "$work/headers" --write-out '%{http_code}' \
      "${FLEX_API%/}$2") || ended=$?

    # After these nothing was sent, unless an earlier request was.
    case $ended$lost in
      3) flex misconfigured "the key api is not a URL" ;;
      60) flex misconfigured "ca.crt of the Secret has no CA that has signed for the host of api" ;;
      77) flex misconfigured "the Secret lacks the file ca.crt, or it has no certificate" ;;
    esac

    # Without a whole answer its status proves nothing.
    [ $ended = 0 ] || status=000
    case $status in
      000 | 408 | 429 | 50[0-6]) lost=yes ;;
      *) return 0 ;;
    esac
    sleep $pause
  done
}

# judge [STATUS]: ends the run, unless the last answer is a success or has this status.
judge() {
  case $status in
    2?? | "${1:-2xx}") return 0 ;;
  esac

  # This is before lost is asked: that there is no room is true in any case. But an expand without
  # an answer may have grown the volume.
  case $status$lost$grows in
    413 | 507 | 413yes | 507yes)
      flex full "the storage has no room for $FLEX_SIZE bytes:" \
        "delete volumes, or ask its administrator for more"
      ;;
  esac
  [ -z "$lost" ] ||
    flex again "the storage does not answer (last status $status); the provisioner tries again"

  case $status in
    401 | 403)
      flex denied "the storage refuses the provisioner's login:" \
        "an administrator must correct the Secret"
      ;;
    400 | 404 | 405 | 422)
      flex misconfigured "the storage does not accept the request (status $status):" \
        "an administrator must correct the config"
      ;;
    *)
      flex again "the storage refuses the request for now (status $status);" \
        "the provisioner tries again"
      ;;
  esac
}

# read_volumes PATH: writes the list of volumes at a path to the file volumes. A part must not be
# taken for all: a volume that is not in it would be made again, or taken for deleted. An API with
# pages needs a loop here.
read_volumes() {
  ask GET "$1"
  judge
  if [ "$status" != 200 ] || grep -qi '^link:.*next' "$work/headers"; then
    flex again "the storage has not answered with all volumes (status $status):" \
      "an administrator must have the script read all pages"
  fi

  # jq 1.6 rounds long numbers, and a rounded ID is that of another volume. So IDs and sizes are
  # made texts first.
  sed -E 's/"(id|bytes)"[[:space:]]*:[[:space:]]*(-?[0-9][0-9.eE+-]*)/"\1":"\2"/g' \
    "$work/answer" >"$work/texts"

  # Another field may be the address of a next page.
  jq -sc '
    if map(keys) == [["volumes"]] then
      {volumes: [.[0].volumes[]]}
    else error("fields") end' "$work/texts" >"$work/volumes" ||
    flex again "there are no volumes in the answer of the storage, or more than volumes," \
      "such as the address of a next page: an administrator must correct the script"
}

# select_volumes CONDITION JQ: writes what JQ makes of each volume with this condition to the file
# found, a line each. An ID becomes part of a path, so it must have no character that leads away.
select_volumes() {
  jq -cr '
    def text(form):
      if type == "string" and test("\\A(" + form + ")\\z") then . else error("form") end;

    # A size may be 1073741824.0 or 1.5e9, below 2^53, where jq rounds no whole number.
    def size:
      text("(0|[1-9][0-9]{0,17})([.][0-9]+)?([eE][+]?[0-9]{1,2})?") |
      if test("[.eE]") then
        tonumber |
        if . == floor and . < 9007199254740992 then
          floor | tostring
        else error("form") end
      else . end;

    .volumes[] |
    select('"$1"') |
    .id |= text("[0-9A-Za-z][0-9A-Za-z._-]*") |
    '"$2" "$work/volumes" >"$work/found" ||
    flex again "a volume of the storage has an ID or a size of another form;" \
      "the provisioner tries again"
}

# find_volumes JQ: writes what JQ makes of each volume of the claim to the file found, a line each.
# The storage may ignore the question, so each volume is compared with the claim.
find_volumes() {
  read_volumes "/volumes?uid=$FLEX_CLAIM_UID"
  select_volumes '.metadata.uid == env.FLEX_CLAIM_UID' "$1"
}

# must_have_size BYTES: ends the run if the volume has fewer bytes than the claim requests.
must_have_size() {
  [ "$1" -ge "$FLEX_SIZE" ] ||
    flex again "the volume has $1 bytes yet, and the claim requests $FLEX_SIZE;" \
      "the provisioner tries again"
}

# create asks the storage for the volume. Its metadata is the note, which has what an audit needs to
# know of the claim, and by which later runs find it. By the header a storage recognizes a request
# that is repeated.
create() {
  flex note "$work/note"
  ask POST /volumes \
    '{"name":"'"$FLEX_PV_NAME"'","bytes":'"$FLEX_SIZE"',"metadata":'"$(<"$work/note")"'}' \
    "Idempotency-Key: $FLEX_CLAIM_UID"
  judge
  # From here on no failure may promise that nothing was made.
  lost=yes
}

provision() {
  local volume='{bytes: (.bytes | size), server, path}'

  # A claim that no volume can serve is refused before anything exists.
  [ "$FLEX_VOLUME_MODE" = Filesystem ] ||
    flex refuse "the storage has no raw devices: request volumeMode Filesystem"

  # A run that died after its request has left a volume. The list is read again after a request:
  # the answer may be that to an earlier one, and its volume deleted.
  find_volumes "$volume"
  if [ ! -s "$work/found" ]; then
    create
    find_volumes "$volume"
  fi
  [ -s "$work/found" ] ||
    flex again "the storage does not list the new volume yet; the provisioner tries again"
  must_have_size "$(jq -sr '.[0].bytes' "$work/found")"

  # The PV is last, when the storage lists the volume with its size.
  flex pv "$(jq -sc '.[0] | {spec: {capacity: {storage: .bytes}, nfs: {server, path}}}' \
    "$work/found")"
}

expand() {
  local bytes id
  grows=yes
  find_volumes '"\(.bytes | size) \(.id)"'
  [ -s "$work/found" ] ||
    flex again "the storage does not have the volume: an administrator must look for it"
  while read -r bytes id; do
    # A volume never shrinks.
    [ "$bytes" -lt "$FLEX_SIZE" ] || continue
    ask PATCH "/volumes/${id:?}" "{\"bytes\":$FLEX_SIZE}"
    judge
    # From here on no failure may promise that nothing has grown.
    lost=yes
  done <"$work/found"

  # The storage may have made it larger than requested, or not yet as large.
  find_volumes '.bytes | size'
  bytes=$(sort -n "$work/found" | sed -n 1p)
  must_have_size "${bytes:-0}"
  flex grown "$bytes"
}

# delete deletes the volumes of the claim, with FLEX_LISTED_VOLUME that one alone.
delete() {
  local id wanted='.id | select([env.FLEX_LISTED_VOLUME] - [null, "", .] == [])'
  find_volumes "$wanted"

  # An audit names the volume that it has listed. If it is not the claim's, an earlier run has
  # deleted it, or it is another claim's: only the list of all volumes proves the former.
  if [ -n "${FLEX_LISTED_VOLUME:-}" ] && [ ! -s "$work/found" ]; then
    read_volumes /volumes
    jq -e 'all(.volumes[].id; type == "string" and . != env.FLEX_LISTED_VOLUME)' \
      "$work/volumes" >/dev/null ||
      flex again "the listed volume is not the claim's, or a volume has an ID of another form"
  fi
  [ -s "$work/found" ] || return 0

  # 404: an earlier request has deleted it.
  while read -r id; do
    ask DELETE "/volumes/${id:?}"
    judge 404
  done <"$work/found"

  # Some storages delete later than they answer, and 404 may be about another path.
  find_volumes "$wanted"
  [ ! -s "$work/found" ] ||
    flex again "the storage still lists the volume that it was asked to delete;" \
      "the provisioner tries again"
}

list() {
  read_volumes /volumes
  # A volume whose size has another form is listed, too: only its ID must be known.
  select_volumes .metadata.uid \
    '.metadata + {volume: .id, size: (try (.bytes | size | tonumber) catch 0)}'
  # flex takes an empty file for a fault.
  if [ -s "$work/found" ]; then
    flex list "$work/found"
  else
    flex list
  fi
}

case $1 in
  provision | expand | delete | list) "$1" ;;
  *)
    echo "this script has no verb $1"
    exit 64
    ;;
esac
