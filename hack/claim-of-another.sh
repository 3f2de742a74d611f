#!/bin/bash
# claim-of-another.sh: makes the claim "data" that docs/migrate.md starts from, as the provisioner openstack.org/standalone-cinder leaves it: its volume
# is reserved, exported and attached to a host of that provisioner's own name, and its PersistentVolume names a Secret beside the claim.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh

old=pvc-of-standalone-cinder
initiator=iqn.2018-01.io.k8s:a13fc3d1cc22

# act BODY: an action of the volume.
act() {
  in_control curl -sSf -H "X-Auth-Token: $token" -H 'Content-Type: application/json' --data "$1" "$cinder/volumes/$volume/action"
}

field() { jq -r ".connection_info.data.$1" <<<"$connection"; }

objects() {
  cat <<END
apiVersion: v1
kind: Secret
metadata: {name: $old-secret, namespace: default}
type: kubernetes.io/iscsi-chap
stringData:
  node.session.auth.username: "$(field auth_username)"
  node.session.auth.password: "$(field auth_password)"
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: $old
  annotations:
    pv.kubernetes.io/provisioned-by: openstack.org/standalone-cinder
    standaloneCinderProvisionerIdentity: example
    cinderVolumeId: $volume
spec:
  storageClassName: standalone-cinder
  persistentVolumeReclaimPolicy: Delete
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  claimRef: {namespace: default, name: data}
  iscsi:
    targetPortal: $(field target_portal)
    iqn: $(field target_iqn)
    lun: $(field target_lun)
    initiatorName: $initiator
    chapAuthSession: true
    secretRef: {name: $old-secret}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec:
  storageClassName: standalone-cinder
  volumeName: $old
  accessModes: [ReadWriteOnce]
  resources:
    requests: {storage: 1Gi}
END
}

volume=$(test/cinder/volume.sh make cinder-dynamic-pvc-example)
login=$(test/cinder/token.sh)
read -r cinder token <<<"$login"
act '{"os-reserve": {}}'
connection=$(act '{"os-initialize_connection": {"connector": {"host": "localhost", "ip": "127.0.0.1", "initiator": "'$initiator'"}}}')
act '{"os-attach": {"mountpoint": "/k8s.io/standalone-cinder", "host_name": "standalone-cinder.k8s.io", "mode": "rw"}}'
objects | test/cluster/kubectl.sh apply -f - >/dev/null
test/cluster/kubectl.sh wait --for=jsonpath='{.status.phase}'=Bound --timeout=1m pvc/data >/dev/null
say "claim default/data is bound to $old, whose volume is $volume"
