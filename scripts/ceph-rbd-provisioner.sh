#!/bin/bash
# A provisioner for Ceph by the program rbd alone: images of a pool, as static volumes of ceph-csi. The names of images are the
# dispatcher's, and no text of a user is read as an option.
set -euo pipefail
# shellcheck source=ceph-rbd-functions.sh
. "${0%/*}/ceph-rbd-functions.sh"
provision() {
  case $FLEX_VOLUME_MODE$FLEX_ACCESS_MODES in
    Filesystem*Many*) flex refuse "a file system on an image can be used on one node only: request ReadWriteOnce, or volumeMode Block" ;;
  esac
  jq '.requests[] | select(.uid == env.FLEX_CLAIM_UID)' /etc/flex/request.json >"$work/request"
  from=$(jq -r '.source | if . == null then "none" elif .pvName == "pvc-" + .uid then .pvName else "of-another-storage" end' "$work/request")
  if ! completed "$name"; then # there is no image, or one that a run has not completed
    made=yes
    ceph rm --no-progress "$name" || true
    if [ "$from" = none ]; then
      ceph create --image-feature layering --size 0 "$name" || flex misconfigured "Ceph has no pool $FLEX_POOL: create it, or correct the key pool" || exit
    else
      clone "$from"
    fi
    flex note "$work/note" # for audits
    ceph image-meta set "$name" flex "$(jq -c --arg from "$from" '. + {$from}' "$work/note")"
    completed "$name"
  fi
  made=yes
  [ "$(jq -r .from "$work/out")" = "$from" ] || flex refuse "the volume was created from another source: delete the claim, and create another one"
  if [ "$from" != none ]; then # so that source and clone can be deleted in any order
    ceph info --format json "$name"
    [ "$(jq .parent "$work/out")" = null ] || ceph flatten --no-progress "$name"
    drop_snapshot "$from"
  fi
  grow
  flex pv "$(jq -c '{
    metadata: {annotations: (if .source then {"flex-provisioner.io/clone-of": "\(.source.namespace)/\(.source.name)"} else {} end)},
    spec: ({csi: {driver: "rbd.csi.ceph.com", volumeHandle: .pvName,
      fsType: (env.FLEX_FSTYPE // "ext4"),
      volumeAttributes: {clusterID: env.FLEX_CLUSTER_ID, pool: env.FLEX_POOL, staticVolume: "true", imageFeatures: "layering"},
      nodeStageSecretRef: {namespace: "flex-provisioner", name: env.FLEX_NODE_SECRET}}}
      # The clone of an xfs has its UUID. The kernel mounts both on one node only with this option.
      + if .source and env.FLEX_FSTYPE == "xfs" and .volumeMode == "Filesystem" then
          {mountOptions: ((.mountOptions // []) | . + (["nouuid"] - .))}
        else {} end)}' "$work/request")"
}
delete() {
  [ "${FLEX_LISTED_VOLUME:-$name}" = "$name" ] || flex again "the listed volume is not the claim's"
  ceph rm --no-progress "$name" || ceph ls --format json || flex again "Ceph has no pool $FLEX_POOL, so the image may be in one of another name" || exit
  [ "$FLEX_UNDO" != true ] || drop_snapshots
}
list() {
  ceph ls --format json || flex misconfigured "Ceph has no pool $FLEX_POOL: create it, or correct the key pool" || exit
  jq -r ".[] | select($ours)" "$work/out" >"$work/images"
  while read -r image; do
    completed "$image" || continue # it was deleted meanwhile, or a run has not completed it
    mv "$work/out" "$work/note"
    ceph info --format json "$image" || continue
    jq -c --slurpfile note "$work/note" '$note[0] + {size}' "$work/out"
  done <"$work/images" >"$work/list"
  if [ -s "$work/list" ]; then flex list "$work/list"; else flex list; fi
}
case $1 in
  provision | delete | list) "$1" ;;
  expand) grow; flex grown "$now" ;;
  *) echo "this image has no verb $1"; exit 64 ;;
esac
