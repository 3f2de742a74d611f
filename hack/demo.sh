#!/bin/bash
# demo.sh: from nothing to a claim on a real Cinder that pods on two nodes mount, to a file in a directory volume, and back.
# KEEP=1 leaves everything running. Whatever was up before is left up.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh

NS=demo
CONFIGS=flex-provisioner
VOLUMES=/var/lib/flex-volumes

kubectl() { test/cluster/kubectl.sh "$@"; }
title() { printf '\n--- %s\n' "$*"; }

# until_ok SECONDS WHAT CMD...: poll until CMD succeeds.
until_ok() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then
      kubectl -n "$NS" describe pvc >&2 || true
      kubectl get pods -A -o wide >&2 || true
      die "$what: timed out"
    fi
    sleep 0.05
  done
}

# moment WHAT CMD...: wait for CMD to print something, and print it with the time since the claim.
moment() {
  local what=$1 text
  shift
  printed() { text=$("$@" 2>/dev/null) && [ -n "$text" ]; }
  until_ok_here "$what" printed "$@"
  local ms=$((($(date +%s%N) - T_CLAIM) / 1000000))
  printf '  +%d.%02d s  %-8s %s\n' $((ms / 1000)) $((ms % 1000 / 10)) "$what" "$text"
}

# until_ok_here keeps the variable that the command sets.
until_ok_here() {
  local end=$((SECONDS + 90)) what=$1
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || { kubectl -n "$NS" describe pvc >&2; die "$what: timed out after 90 s"; }
    sleep 0.05
  done
}

uid_of() { kubectl -n "$NS" get pvc "$1" -o 'jsonpath={.metadata.uid}'; }
job_of() { kubectl -n "$CONFIGS" get jobs -l "flex-provisioner.io/claim-uid=$1" -o 'jsonpath={.items[0].metadata.name}'; }
node_of() { kubectl -n "$CONFIGS" get pods -l "flex-provisioner.io/claim-uid=$1" -o 'jsonpath={.items[0].spec.nodeName}'; }
volume_of() { test/cinder/list.sh | awk -F '\t' -v uid="$1" 'index($0, uid) {print $1, $2, $3 " GiB"}'; }
pv_of() { kubectl get pv "pvc-$1" -o 'jsonpath={.metadata.name} {.spec.iscsi.targetPortal} {.spec.iscsi.iqn}'; }
bound() { kubectl -n "$NS" get pvc "$1" -o 'jsonpath={.status.phase}' | grep Bound; }

up() {
  local cluster=
  [ -e "$LAB_KUBECONFIG" ] && cluster=1
  test/cluster/up.sh
  [ -n "$cluster" ] || OURS+=(cluster)
  [ -e "$LAB_STATE/cinder/settings" ] || OURS+=(cinder)
  MODE=noauth BACKENDS=lvm,lvmmp,fc test/cinder/up.sh
  hack/deploy.sh
}

down() {
  local status=$? part
  if [ -n "${KEEP:-}" ]; then
    echo "kept running; export KUBECONFIG=$LAB_KUBECONFIG and run kubectl with nsenter --net=/run/netns/$LAB_NETNS"
    return
  fi
  for part in "${OURS[@]}"; do "test/$part/down.sh" || status=1; done
  [ "$status" = 0 ] && echo "$DONE"
  exit "$status"
}

cinder_claim() {
  title "a claim of the class cinder-iscsi"
  kubectl -n "$NS" apply -f deploy/examples/claim.yaml
  T_CLAIM=$(date +%s%N)
  local uid
  uid=$(uid_of data)
  moment claim echo "$NS/data, UID $uid"
  moment Job job_of "$uid"
  moment node node_of "$uid"
  moment volume volume_of "$uid"
  moment PV pv_of "$uid"
  moment Bound bound data
  kubectl -n "$CONFIGS" get pods -l "flex-provisioner.io/claim-uid=$uid" -o wide
  kubectl get nodes -L node-restriction.kubernetes.io/flex-storage-network
  until_ok 30 "the result on the claim" eval "kubectl -n $NS get pvc data -o yaml | grep -q 'flex-provisioner.io/result: succeeded'"
  kubectl -n "$NS" get events --field-selector involvedObject.name=data -o custom-columns=REASON:.reason,NOTE:.message
}

pod() { # NAME CLAIM COMMAND [NODE]: a pod that mounts a claim at /data, and its end
  kubectl -n "$NS" apply -f - >/dev/null <<POD
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  securityContext: {fsGroup: 65532}
  nodeSelector: {${4:+kubernetes.io/hostname: $4}}
  containers:
    - name: c
      image: localhost/directory-provisioner:dev
      command: [/bin/bash, -c, "$3"]
      volumeMounts: [{name: volume, mountPath: /data}]
  volumes: [{name: volume, persistentVolumeClaim: {claimName: $2}}]
POD
  until_ok 90 "the pod $1" eval "kubectl -n $NS get pod $1 -o 'jsonpath={.status.phase}' | grep -q Succeeded"
}

must_read() { # POD TEXT
  echo "the second pod reads: $(kubectl -n "$NS" logs "$1")"
  [ "$(kubectl -n "$NS" logs "$1")" = "$2" ] || die "the second pod read something else"
}

# The kubelet logs in to the target with the PV's coordinates and the CHAP Secret that it names, and makes the file system.
mounted() {
  title "a pod on node1 writes to it, a pod on node2 reads: mounted by the kubelet alone, with no driver on the nodes"
  pod writer-1 data "echo written on node1 > /data/note; grep /data /proc/mounts" node1
  kubectl -n "$NS" logs writer-1
  kubectl -n "$NS" delete pod writer-1 >/dev/null
  pod reader-2 data "cat /data/note" node2
  must_read reader-2 "written on node1"
}

directory_claim() {
  title "a claim of the class node-directory, provisioned by 22 lines of bash"
  kubectl -n "$NS" apply -f - <<'CLAIM'
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: files}
spec:
  storageClassName: node-directory
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
CLAIM
  pod writer files "echo written by one pod > /data/note"
  pod reader files "cat /data/note"
  must_read reader "written by one pod"
  local uid
  uid=$(uid_of files)
  kubectl get pv "pvc-$uid" -o 'custom-columns=PV:.metadata.name,PATH:.spec.local.path,NODE:.spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]'
  find "$LAB_STATE"/kube/node?/volumes -name note | sed "s|$LAB_STATE/kube/||"
}

no_claims() { [ -z "$(kubectl get pv -o name)$(kubectl -n "$NS" get pvc -o name)" ]; }

clean_up() {
  title "deleting both claims"
  kubectl -n "$NS" delete pod --all --wait=true >/dev/null
  kubectl -n "$NS" delete pvc data files
  until_ok 90 "the PVs' end" no_claims
  [ -z "$(test/cinder/list.sh)" ] || die "Cinder still has volumes: $(test/cinder/list.sh)"
  echo "Cinder: no volume"
  secrets=$(kubectl -n "$CONFIGS" get secret -o name | grep -v '^secret/cinder$' || true)
  [ -z "$secrets" ] || die "Secrets are left: $secrets"
  echo "Kubernetes: no PV, no claim, no CHAP Secret"
  left=$(find "$LAB_STATE"/kube/node?/volumes -mindepth 1)
  [ -z "$left" ] || die "directories are left: $left"
  echo "nodes: $VOLUMES is empty"
}

DONE="demo: done; both claims were bound, used and deleted, and nothing is left"
OURS=()
trap down EXIT
up
kubectl create namespace "$NS" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
cinder_claim
mounted
directory_claim
clean_up
kubectl delete namespace "$NS" >/dev/null
[ -z "${KEEP:-}" ] || echo "$DONE"
