# shellcheck shell=bash
# The story that demo.sh tells: three claims, in the namespace demo.

# of_claim KIND PATH: a field of what runs for the first claim.
of_claim() { kubectl -n flex-provisioner get "$1" -l "flex-provisioner.io/claim-uid=$uid" -o "jsonpath={.items[0]$2}"; }
volume() { test/cinder/list.sh | awk -F '\t' -v uid="$uid" 'index($0, uid) {print $1, $2, $3 " GiB"}'; }
says() { kubectl -n demo get pvc "$1" -o yaml | grep -q "$2"; }
no_claims() { [ -z "$(kubectl get pv -o name)$(kubectl -n demo get pvc -o name)" ]; }

# flex ARGS...: kubectl flex, which is to find something here.
flex() {
  local found
  found=$(PATH=$PWD/bin:$PATH kubectl flex "$@" 2>&1) || true
  echo "$found"
  [[ $found == *cause* ]] || die "kubectl flex $1 has found no cause"
}

claim() { # NAME CLASS SIZE
  kubectl -n demo apply -f - <<<"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: $1}, spec: {
    storageClassName: $2, accessModes: [ReadWriteOnce], resources: {requests: {storage: $3}}}}"
}

# prints CMD...: whether it prints anything, and that in $text.
prints() { text=$("$@" 2>/dev/null) && [ -n "$text" ]; }

# moment WHAT CMD...: wait for CMD to print something, and print it with the time since the claim.
moment() {
  local what=$1 ms
  shift
  until_ok 90 "$what" prints "$@"
  ms=$((($(date +%s%N) - T_CLAIM) / 1000000))
  printf '  +%d.%02d s  %-8s %s\n' $((ms / 1000)) $((ms % 1000 / 10)) "$what" "$text"
}

kubectl create namespace demo --dry-run=client -o yaml | kubectl apply -f - >/dev/null
title "a claim of the class cinder-iscsi"
claim data cinder-iscsi 1Gi
T_CLAIM=$(date +%s%N)
uid=$(kubectl -n demo get pvc data -o 'jsonpath={.metadata.uid}')
moment claim echo "demo/data, UID $uid"
moment Job of_claim jobs .metadata.name
moment node of_claim pods .spec.nodeName
moment volume volume
moment PV kubectl get pv "pvc-$uid" -o 'jsonpath={.metadata.name} {.spec.iscsi.targetPortal} {.spec.iscsi.iqn}'
moment Bound eval "kubectl -n demo get pvc data -o 'jsonpath={.status.phase}' | grep Bound"
until_ok 30 "the result on the claim" says data 'flex-provisioner.io/result: succeeded'
kubectl -n demo get events --field-selector involvedObject.name=data -o custom-columns=REASON:.reason,NOTE:.message

# The kubelet logs in to the target with the PV's coordinates and the CHAP Secret that it names, and makes the file system.
title "a pod on node1 writes to it, a pod on node2 reads: mounted by the kubelet alone, with no driver on the nodes"
pod writer-1 data "echo written on node1 > /data/note; grep /data /proc/mounts" node1
kubectl -n demo delete pod writer-1 >/dev/null
must_be "the second pod reads" "written on node1" "$(pod reader-2 data "cat /data/note" node2)"

title "a claim of the class node-directory, provisioned by some twenty lines of bash"
claim files node-directory 1Gi
pod writer files "echo written by one pod > /data/note"
must_be "the second pod reads" "written by one pod" "$(pod reader files "cat /data/note")"
find "$LAB_STATE"/kube/node?/volumes -name note | sed "s|$LAB_STATE/kube/||"

title "a claim that cannot be served: kubectl flex why --namespace=demo big"
claim big cinder-iscsi 2Pi
until_ok 60 "the failure of the claim big" says big 'flex-provisioner.io/result: failed'
flex why --namespace=demo big

title "kubectl flex status"
flex status

title "deleting the claims"
kubectl -n demo delete pod --all --wait=true >/dev/null
kubectl -n demo delete pvc data files big
until_ok 90 "the PVs' end" no_claims
must_be "volumes in Cinder" "" "$(test/cinder/list.sh)"
must_be "Secrets beside Cinder's login" "" "$(kubectl -n flex-provisioner get secret -o name | grep -v '^secret/cinder$' || true)"
must_be "directories on the nodes" "" "$(find "$LAB_STATE"/kube/node?/volumes -mindepth 1)"
kubectl delete namespace demo >/dev/null
