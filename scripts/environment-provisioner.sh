#!/bin/bash
# A provisioner that reads nothing but its environment, as in the original design. It writes the PV
# of a directory of an NFS server by kubectl, and creates nothing else.
#
# Config: use-nfs-server. It notes every variable on the PV as the annotation e2e/NAME, so that a
# test can read them. A real provisioner must not write its token anywhere.
set -euo pipefail

if [ "$1" != provision ]; then
  echo "this image supports the verb provision, not $1"
  exit 64
fi

# kubectl would ask the API server through the proxy that a cluster may give its pods.
unset HTTPS_PROXY https_proxy

# The variables of the contract, each as an annotation.
seen=()
for name in "${!FLEX_@}"; do
  seen+=("e2e/$name=${!name}")
done

# write creates the PV. It prints nothing: what it writes has a token in it. If it cannot create the
# PV, an earlier run may have done so, and that is a success. The UID is in the PV's name.
write() {
  local pvs=/api/v1/persistentvolumes
  kubectl create --raw "$pvs?fieldValidation=Strict" -f - >/dev/null ||
    kubectl get --raw "$pvs/$FLEX_PV_NAME" >/dev/null
}

# --local adds the annotations without a request.
kubectl annotate --local -f - -o json "${seen[@]}" <<EOF | write
apiVersion: v1
kind: PersistentVolume
metadata:
  name: $FLEX_PV_NAME
  annotations:
    pv.kubernetes.io/provisioned-by: flex-provisioner.io
    flex-provisioner.io/claim-uid: "$FLEX_CLAIM_UID"
spec:
  claimRef:
    apiVersion: v1
    kind: PersistentVolumeClaim
    namespace: "$FLEX_CLAIM_NAMESPACE"
    name: "$FLEX_CLAIM_NAME"
    uid: "$FLEX_CLAIM_UID"
  storageClassName: "$FLEX_STORAGE_CLASS"
  persistentVolumeReclaimPolicy: $FLEX_RECLAIM_POLICY
  capacity: {storage: "$FLEX_SIZE"}
  accessModes: [$FLEX_ACCESS_MODES]
  volumeMode: $FLEX_VOLUME_MODE
  nfs: {server: $FLEX_USE_NFS_SERVER, path: /exports/$FLEX_PV_NAME}
EOF
