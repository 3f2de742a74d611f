#!/bin/bash
# A provisioner for a storage with a REST API: the script to copy for an appliance, whose paths, bodies and fields are in find_volumes
# and below. No text of a user becomes part of a URL, and of the storage's only an ID: any other could lead to what is beside the volumes.
set -euo pipefail; ulimit -f 32768 # KiB: a storage may answer without an end, and would fill the node's disk before the kubelet sees it
[ -n "${FLEX_CLAIM_UID:-}" ] || exec flex each 8 "$0" "$@" # a batch: this script again, for each request
secret=/etc/flex/secret work=$(mktemp -d) lost='' grows='' unread="there are no volumes in the answer of the storage, or one has an ID of another form; the provisioner tries again"
export CURL_CA_BUNDLE=$secret/ca.crt # for https; there are no other CAs in the image
[ -r $secret/header ] || flex misconfigured "the Secret lacks the file header"; flex need api

# ask METHOD PATH [BODY [HEADER]]: sets status, and writes the answer to a file. A change without an answer may have been made, and is
# repeated: each must be one that the storage recognizes. curl reads the login from the file: arguments can be seen.
ask() {
  for pause in 1 2 0; do
    status=$(curl --silent --show-error --globoff --connect-timeout 5 --max-time "${FLEX_ANSWER_TIMEOUT:-30}" --request "$1" \
      --header "@$secret/header" --header "Content-Type: application/json" \
      ${4:+--header "$4"} ${3:+--data "$3"} --output "$work/answer" --write-out '%{http_code}' "$FLEX_API$2") || status=000
    case $status in 000 | 408 | 429 | 50[0-6]) lost=yes && sleep $pause ;; *) return 0 ;; esac
  done
}
# judge [STATUS]: ends the run, unless the last answer is a success or has this status. 77 and 78 promise that nothing was made, and 73 that nothing has grown.
judge() {
  case $status in 2?? | "${1:-2xx}") return 0 ;; esac
  case $status$lost$grows in 413 | 507 | 413yes | 507yes) flex full "the storage has no room for $FLEX_SIZE bytes: delete volumes, or ask its administrator for more" ;; esac
  [ -z "$lost" ] || flex again "the storage does not answer (last status $status); the provisioner tries again"
  case $status in
    401 | 403) flex denied "the storage refuses the provisioner's login: an administrator must correct the Secret" ;;
    400 | 404 | 405 | 422) flex misconfigured "the storage does not accept the request (status $status): an administrator must correct the config" ;;
    *) flex again "the storage refuses the request for now (status $status); the provisioner tries again" ;;
  esac
}
# find_volumes JQ: writes what JQ makes of each volume of the claim to a file, a line each. An API with pages needs a loop here.
find_volumes() {
  ask GET "/volumes?uid=$FLEX_CLAIM_UID"; judge
  jq -ncr "input.volumes[] | select(.metadata.uid == env.FLEX_CLAIM_UID) | .id |= (tostring | select(test(\"\\\\A[0-9A-Za-z][0-9A-Za-z._-]*\\\\z\")) // error) | $1" "$work/answer" >"$work/found" || flex again "$unread"
}
provision() {
  [ "$FLEX_VOLUME_MODE" = Filesystem ] || flex refuse "the storage has no raw devices: request volumeMode Filesystem"
  find_volumes .; if [ ! -s "$work/found" ]; then # no earlier run has created one
    flex note "$work/note" # what an audit needs to know of the claim
    ask POST /volumes "$(jq -c '{name: env.FLEX_PV_NAME, bytes: (env.FLEX_SIZE | tonumber), metadata: .}' "$work/note")" "Idempotency-Key: $FLEX_CLAIM_UID"; judge
    mv "$work/answer" "$work/found"
  fi
  flex pv "$(jq -sc '.[0] | {spec: {capacity: {storage: "\(.bytes)"}, nfs: {server, path}}}' "$work/found")"
}
expand() {
  grows=yes; find_volumes '"\(.bytes | tonumber) \(.id)"'; [ -s "$work/found" ] || flex again "the storage does not have the volume: an administrator must look for it"
  while read -r bytes id; do [ "$bytes" -ge "$FLEX_SIZE" ] || { ask PATCH "/volumes/$id" "{\"bytes\":$FLEX_SIZE}"; judge; lost=yes; }; done <"$work/found" # from here on 73 would be wrong
  find_volumes '.bytes | tonumber'; flex grown "$(sort -n "$work/found" | tail -n 1)" # it may have made it larger than requested
}
delete() { # with FLEX_LISTED_VOLUME that volume alone. It is not there if an earlier run has deleted it
  find_volumes '.id | select([env.FLEX_LISTED_VOLUME] - [null, "", .] == [])'
  if [ -n "${FLEX_LISTED_VOLUME:-}" ] && [ ! -s "$work/found" ]; then ask GET /volumes; judge
    jq -e '.volumes | all(.id != env.FLEX_LISTED_VOLUME)' "$work/answer" >/dev/null || flex again "the listed volume is not the claim's"; fi
  while read -r id; do ask DELETE "/volumes/${id:?}"; judge 404; done <"$work/found"
}
list() { ask GET /volumes; judge
  jq -nc 'input.volumes[] | select(.metadata.uid) | .metadata + {volume: .id, size: .bytes}' "$work/answer" >"$work/list" || flex again "$unread"
  if [ -s "$work/list" ]; then flex list "$work/list"; else flex list; fi
}
case $1 in provision | delete | expand | list) "$1" ;; *) echo "this image has no verb $1"; exit 64 ;; esac
