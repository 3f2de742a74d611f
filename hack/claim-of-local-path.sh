#!/bin/bash
# claim-of-local-path.sh: makes the claim "data" that docs/migrate-files.md starts from, as local-path-provisioner leaves it: a directory of node1, with two
# files in it, and a PersistentVolume that names it.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh

old=pvc-of-local-path
# It is deleted with the node.
dir=$LAB_STATE/kube/node1/local-path/${old}_default_data

mkdir -p "$dir/folder"
echo "of another provisioner" >"$dir/note"
echo hidden >"$dir/folder/.file"
chown -R 1000:1000 "$dir"
chmod 0777 "$dir"
test/cluster/kubectl.sh apply -f - >/dev/null <<END
apiVersion: v1
kind: PersistentVolume
metadata:
  name: $old
  annotations: {pv.kubernetes.io/provisioned-by: rancher.io/local-path}
spec:
  storageClassName: local-path
  persistentVolumeReclaimPolicy: Delete
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  claimRef: {namespace: default, name: data}
  hostPath: {path: $dir, type: DirectoryOrCreate}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node1]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec:
  storageClassName: local-path
  volumeName: $old
  accessModes: [ReadWriteOnce]
  resources:
    requests: {storage: 1Gi}
END
test/cluster/kubectl.sh wait --for=jsonpath='{.status.phase}'=Bound --timeout=1m pvc/data >/dev/null
say "claim default/data is bound to $old, a directory of node1"
