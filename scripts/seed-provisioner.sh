#!/bin/bash
# A provisioner with extra steps: a new volume holds a copy of /seed and is announced at a URL before any claim
# is bound to it. Each step may be repeated from any point: an incomplete copy never has the volume's name, and the
# announcement carries the claim's UID, by which its receiver recognizes a repetition.
set -euo pipefail

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=${FLEX_BASE_DIR:?}/${FLEX_PV_NAME:?}

copy() {
  [ ! -d "$dir" ] || return 0 # done by an earlier run
  local part=$dir.part.$HOSTNAME # a pod's own: two of one Job may overlap for a moment
  mkdir -p "$FLEX_BASE_DIR" # in case this is the first volume
  flex empty "$part"
  mkdir "$part"
  cp -L /seed/* "$part/" # a mounted ConfigMap is made of links
  chmod a+rwX "$part" "$part"/*
  sync
  mv -T "$part" "$dir" || [ -d "$dir" ]
}

announce() {
  timeout 10 wget -q -O /dev/null --header "Content-Type: application/json" --header "Idempotency-Key: $FLEX_CLAIM_UID" \
    --post-data '{"volume":"'"$FLEX_PV_NAME"'","bytes":'"$FLEX_SIZE"'}' "$FLEX_NOTIFY_URL" && return 0
  echo "claim: the volume is ready, but could not be announced; the provisioner tries again"
  exit 75
}

write() {
  kubectl patch --local -f /etc/flex/pv.json --type=merge -o json -p '{"spec":{
    "local": {"path": "'"$dir"'"},
    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
      {"key": "kubernetes.io/hostname", "operator": "In", "values": ["'"${FLEX_SELECTED_HOSTNAME:?}"'"]}]}]}}}}' |
    kubectl create --raw '/api/v1/persistentvolumes?fieldValidation=Strict' -f - ||
    kubectl get --raw "/api/v1/persistentvolumes/$FLEX_PV_NAME" # a rerun finds it there
}

case $1 in
  provision)
    if [ "$FLEX_VOLUME_MODE" != Filesystem ]; then
      echo "claim: a directory cannot be a raw block device: request volumeMode Filesystem"
      exit 65
    fi
    copy
    announce
    write
    ;;
  delete) flex empty "$dir" "$dir".part.* ;; # its pods may still write there
  *) echo "this image supports the verbs provision and delete, not $1"; exit 64 ;;
esac
