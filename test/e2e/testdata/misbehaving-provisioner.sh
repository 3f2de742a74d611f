#!/bin/bash
# A provisioner that does what its config's key "misbehave" says, for the tests of what follows from that.
set -euo pipefail

[ "$1" = provision ] || exit 0 # there is no storage behind it

pv() { # PATCH...: the skeleton with a source, changed
  local out patch
  out=$(kubectl patch --local -f /etc/flex/pv.json --type=merge -o json -p '{"spec":{"nfs":{"server":"10.250.0.9","path":"/'"$FLEX_PV_NAME"'"}}}')
  for patch in "$@"; do out=$(kubectl patch --local -f - --type=merge -o json -p "$patch" <<<"$out"); done
  printf '%s\n' "$out"
}

case ${FLEX_MISBEHAVE:-} in
  nothing) ;;
  size) pv '{"spec":{"capacity":{"storage":"1Mi"}}}' | kubectl create -f - ;;
  mode) pv '{"spec":{"volumeMode":"Block"}}' | kubectl create -f - ;;
  access) pv '{"spec":{"accessModes":["ReadOnlyMany"]}}' | kubectl create -f - ;;
  class) pv '{"spec":{"storageClassName":"another"}}' | kubectl create -f - ;;
  name) pv '{"metadata":{"name":"mine-'"$FLEX_CLAIM_UID"'"}}' | kubectl create -f - ;;
  claim) pv '{"spec":{"claimRef":{"name":"another","uid":"11111111-2222-3333-4444-555555555555"}}}' | kubectl create -f - ;;
  fails) pv | kubectl create -f -; exit 1 ;;
  two)
    pv | kubectl create -f -
    pv '{"metadata":{"name":"mine-'"$FLEX_CLAIM_UID"'"}}' | kubectl create -f - || true
    ;;
  hangs) sleep 3600 ;;
  forks)
    pv | kubectl create -f -
    sleep 3600 &
    ;;
  talks) head -c 10000000 /dev/zero | tr '\0' 'x'; echo; echo "claim: that was much"; exit 1 ;;
  binary) head -c 100000 /dev/urandom; printf '\nclaim: \001that\377 was\033[31m binary\n'; exit 1 ;;
  *) pv | kubectl create -f - || kubectl get pv "$FLEX_PV_NAME" ;;
esac
