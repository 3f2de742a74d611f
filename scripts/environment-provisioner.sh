#!/bin/bash
# A provisioner that reads nothing but its environment, as in the original design: it writes the PV of a
# directory that the NFS server of its config exports. It notes every variable on the PV as the annotation
# e2e/NAME, so that a test can read them; a real provisioner must not write tokens anywhere.
set -euo pipefail

[ "$1" = provision ] || { echo "this image supports the verb provision, not $1"; exit 64; }

# kubectl would ask the API server through the proxy that a cluster may give its pods.
unset HTTPS_PROXY https_proxy

seen=()
for name in "${!FLEX_@}"; do seen+=("e2e/$name=${!name}"); done

# write prints nothing: what it writes has a token in it.
write() {
  kubectl create --raw '/api/v1/persistentvolumes?fieldValidation=Strict' -f - >/dev/null ||
    kubectl get --raw "/api/v1/persistentvolumes/$FLEX_PV_NAME" >/dev/null
}

kubectl annotate --local -f - -o json "${seen[@]}" <<EOF | write
apiVersion: v1
kind: PersistentVolume
metadata:
  name: $FLEX_PV_NAME
  annotations:
    pv.kubernetes.io/provisioned-by: flex-provisioner.io
    flex-provisioner.io/claim-uid: "$FLEX_CLAIM_UID"
spec:
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: "$FLEX_CLAIM_NAMESPACE", name: "$FLEX_CLAIM_NAME", uid: "$FLEX_CLAIM_UID"}
  storageClassName: "$FLEX_STORAGE_CLASS"
  persistentVolumeReclaimPolicy: $FLEX_RECLAIM_POLICY
  capacity: {storage: "$FLEX_SIZE"}
  accessModes: [$FLEX_ACCESS_MODES]
  volumeMode: $FLEX_VOLUME_MODE
  nfs: {server: $FLEX_USE_NFS_SERVER, path: /exports/$FLEX_PV_NAME}
EOF
