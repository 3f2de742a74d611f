#!/bin/bash
# A provisioner for Ceph by the program rbd alone: images of a pool, as static volumes of ceph-csi.
#
# Config: monitors, pool, cluster-id, node-secret (the Secret of the nodes). Secret: userID and
# userKey. The names of images are the dispatcher's, and no text of a user is read as an option.
# Promises: an image counts only when it has its note, which comes last, and each run may die at any
# step: the next one finishes its work.
set -euo pipefail

# shellcheck source=ceph-rbd-functions.sh
. "${0%/*}/ceph-rbd-functions.sh"

# create makes the image. A run that was killed before the note may have left one: it is removed,
# and made anew, since it may be the clone of another source.
create() {
  local from=$1
  # From here on no failure may promise that nothing was made.
  made=yes
  ceph rm --no-progress "$name" || true
  if [ "$from" = none ]; then
    # It has no size yet: grow gives it one.
    ceph create --image-feature layering --size 0 "$name" ||
      flex misconfigured "Ceph has no pool $FLEX_POOL: create it, or correct the key pool" ||
      exit
  else
    clone "$from"
  fi

  # The note has what an audit needs to know of the claim. It is in one value with the source: an
  # image has both or neither.
  flex note "$work/note"
  ceph image-meta set "$name" flex "$(jq -c --arg from "$from" '. + {$from}' "$work/note")"
  completed "$name"
}

# separate makes the clone an image of its own, so that source and clone can be deleted in any
# order. The snapshot is removed last, since the clone is read from it.
separate() {
  local from=$1
  ceph info --format json "$name"
  [ "$(jq .parent "$work/out")" = null ] ||
    ceph flatten --no-progress "$name"
  drop_snapshot "$from"
}

provision() {
  local from

  # A claim that no volume can serve is refused before anything exists.
  case $FLEX_VOLUME_MODE$FLEX_ACCESS_MODES in
    Filesystem*Many*)
      flex refuse "a file system on an image can be used on one node only:" \
        "request ReadWriteOnce, or volumeMode Block"
      ;;
  esac

  # A source whose PV does not have the name of its claim is of another storage.
  jq '.requests[] | select(.uid == env.FLEX_CLAIM_UID)' /etc/flex/request.json >"$work/request"
  from=$(jq -r '
    .source |
    if . == null then "none"
    elif .pvName == "pvc-" + .uid then .pvName
    else "of-another-storage" end' "$work/request")

  completed "$name" || create "$from"

  # There is an image, whichever run has created it.
  made=yes
  [ "$(jq -r .from "$work/out")" = "$from" ] ||
    flex refuse "the volume was created from another source:" \
      "delete the claim, and create another one"

  # These steps are repeated in each run, since an earlier one may have died before or in one.
  [ "$from" = none ] ||
    separate "$from"
  grow

  # The PV is last, when the image has its size.
  write_pv
}

# write_pv writes the PersistentVolume: a static volume of ceph-csi.
write_pv() {
  flex pv "$(jq -c '
    {
      metadata: {
        annotations: (
          if .source then
            {"flex-provisioner.io/clone-of": "\(.source.namespace)/\(.source.name)"}
          else {} end
        )
      },
      spec: (
        {
          csi: {
            driver: "rbd.csi.ceph.com",
            volumeHandle: .pvName,
            fsType: (env.FLEX_FSTYPE // "ext4"),
            volumeAttributes: {
              clusterID: env.FLEX_CLUSTER_ID,
              pool: env.FLEX_POOL,
              staticVolume: "true",
              imageFeatures: "layering"
            },
            nodeStageSecretRef: {namespace: "flex-provisioner", name: env.FLEX_NODE_SECRET}
          }
        }
        # The clone of an xfs has its UUID. The kernel mounts both on one node only with this
        # option.
        + if .source and env.FLEX_FSTYPE == "xfs" and .volumeMode == "Filesystem" then
            {mountOptions: ((.mountOptions // []) | . + (["nouuid"] - .))}
          else {} end
      )
    }' "$work/request")"
}

expand() {
  grow
  flex grown "$now"
}

delete() {
  # An audit names the image that it has listed.
  [ "${FLEX_LISTED_VOLUME:-$name}" = "$name" ] ||
    flex again "the listed volume is not the claim's"

  # Without an image it was deleted, or the pool has another name now: only a pool that answers
  # proves the former.
  ceph rm --no-progress "$name" ||
    ceph ls --format json ||
    flex again "Ceph has no pool $FLEX_POOL, so the image may be in one of another name" ||
    exit

  # A run that was killed may have left a snapshot in the image that it was to clone. That of a
  # completed one is removed before its PV is written.
  [ "$FLEX_UNDO" != true ] ||
    drop_snapshots
}

list() {
  local image

  ceph ls --format json ||
    flex misconfigured "Ceph has no pool $FLEX_POOL: create it, or correct the key pool" ||
    exit
  jq -r ".[] | select($ours)" "$work/out" >"$work/images"

  while read -r image; do
    # It was deleted meanwhile, or a run has not completed it.
    completed "$image" || continue
    mv "$work/out" "$work/note"
    ceph info --format json "$image" || continue
    jq -c --slurpfile note "$work/note" '$note[0] + {size}' "$work/out"
  done <"$work/images" >"$work/list"

  # flex takes an empty file for a fault.
  if [ -s "$work/list" ]; then
    flex list "$work/list"
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
