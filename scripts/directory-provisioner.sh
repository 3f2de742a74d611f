#!/bin/bash
# A provisioner in plain bash: one directory per claim, on the node that the scheduler selected.
set -euo pipefail

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=${FLEX_BASE_DIR:?}/${FLEX_PV_NAME:?}

refuse() {
  echo "claim: $1"
  exit 65
}

provision() {
  [ "$FLEX_VOLUME_MODE" = Filesystem ] || refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  case $FLEX_ACCESS_MODES in
    *ReadWriteMany* | *ReadOnlyMany*) refuse "a directory is available on one node only: request ReadWriteOnce" ;;
  esac
  mkdir -p "$dir"
  chmod 0777 "$dir" # pods write there as any user
  kubectl patch --local -f /etc/flex/pv.json --type=merge -o json -p '{"spec":{
    "local": {"path": "'"$dir"'"},
    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
      {"key": "kubernetes.io/hostname", "operator": "In", "values": ["'"${FLEX_SELECTED_HOSTNAME:?}"'"]}]}]}}}}' |
    kubectl create --raw '/api/v1/persistentvolumes?fieldValidation=Strict' -f - ||
    kubectl get --raw "/api/v1/persistentvolumes/$FLEX_PV_NAME" # a rerun finds it there
}

case $1 in
  provision) provision ;;
  delete) flex empty "$dir" ;; # its pods may still write there
  *) echo "this image supports the verbs provision and delete, not $1"; exit 64 ;;
esac
