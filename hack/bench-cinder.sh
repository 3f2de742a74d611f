#!/bin/bash
# bench-cinder.sh [CLAIMS]: how long so many claims (50) of the class cinder-iscsi take until all are bound, and until all volumes are
# deleted, in one run beside
#   the same calls to Cinder in a bare loop (test/cinder/bench), at its best number of loops
#   cinder-csi-plugin with the csi external-provisioner, with raised limits. They make and delete volumes, and export none: that is
#   left to the attacher, when a pod starts
# It needs the lab's cluster with the dispatcher, and Cinder with keystone, which cinder-csi-plugin cannot do without (root); nothing else should run:
#   export FLEX_CONTROLLERS_FLAGS='--kube-api-qps=200 --kube-api-burst=400'    # with its own limit the PV controller binds four claims a second
#   make build; test/cluster/up.sh; MODE=keystone BACKENDS=lvm test/cinder/up.sh; hack/deploy.sh
#   BENCH_AT=1,2,4,8,16    the numbers of loops
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/cluster/env.sh
. test/cluster/env.sh

claims=${1:-50} ns=bench-cinder
OPENRC=$LAB_STATE/cinder/openrc
TMP=$(mktemp -d)
PEERS=()
kubectl() { test/cluster/kubectl.sh "$@"; }

finish() {
  kubectl delete namespace "$ns" --ignore-not-found --wait=false >/dev/null
  kubectl delete storageclass "$ns" --ignore-not-found >/dev/null
  [ ${#PEERS[@]} = 0 ] || kill "${PEERS[@]}" 2>/dev/null || true
  rm -rf "$TMP"
}

# list CLASS: so many claims, as one list.
list() {
  local i
  for i in $(seq "$claims"); do
    printf '%s\n' --- 'apiVersion: v1' 'kind: PersistentVolumeClaim' "metadata: {name: $1-$i, namespace: $ns}" \
      "spec: {storageClassName: $1, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
  done
}

# timed COMMAND...: sets took to the seconds that a command takes.
timed() {
  local from
  from=$(date +%s%N)
  "$@" >/dev/null
  took=$(awk -v ns=$(($(date +%s%N) - from)) 'BEGIN { printf "%.1f", ns / 1e9 }')
}

# watch RESOURCE: what changes goes to a file from now on.
watch() {
  test/cluster/kubectl.sh -n "$ns" get "$1" --watch --output-watch-events -o 'jsonpath={.type} {.object.status.phase} {.object.metadata.name}{"\n"}' >"$TMP/events" &
  WATCH=$!
  PEERS+=("$WATCH")
  sleep 2
}

# until_all WORD: waits until so many objects have shown this type of a change, or this phase. kubectl wait asks for one object after the other,
# which takes ten seconds for 50 that are there.
until_all() {
  local _
  for _ in $(seq 6000); do
    awk -v word="$1" -v want="$claims" '($1 == word || $2 == word) && !seen[$3]++ { n++ } END { exit n < want }' "$TMP/events" && return
    sleep 0.1
  done
  die "not all $claims objects are $1 after ten minutes"
}

bind() {
  kubectl create -f "$TMP/claims"
  until_all Bound
}

# remove: the volumes are deleted when their PersistentVolumes no longer exist.
remove() {
  kubectl -n "$ns" delete pvc --all --wait=false
  until_all DELETED
}

# measure CLASS NAME: a row of the table.
measure() {
  say "$2"
  list "$1" >"$TMP/claims"
  watch pvc
  timed bind
  kill "$WATCH"
  printf '%s\t%s' "$2" "$took" >>"$TMP/rows"
  watch pv
  timed remove
  kill "$WATCH"
  printf '\t%s\n' "$took" >>"$TMP/rows"
}

# loop: the row of the bare loop.
loop() {
  say "the loop"
  go build -o "$TMP/bench" ./test/cinder/bench
  # shellcheck source=/dev/null
  (set -a && . "$OPENRC" && export OS_DOMAIN_ID="$OS_PROJECT_DOMAIN_ID" && in_control "$TMP/bench" -volumes "$claims" -type lvm -at "${BENCH_AT:-1,2,4,8,16}") | tee "$TMP/loop"
  awk 'NR > 1 { if (!made || $2 < made) { made = $2; at = $1 } if (!gone || $4 < gone) { gone = $4; gone_at = $1 } }
    END { printf "a bare loop, %d and %d at a time\t%.1f\t%.1f\n", at, gone_at, made, gone }' "$TMP/loop" >>"$TMP/rows"
}

# peer LOG COMMAND...: a program on the control plane's network.
peer() {
  local log=$1
  shift
  nsenter --net="/run/netns/$LAB_NETNS" "$@" >"$TMP/$log.log" 2>&1 &
  PEERS+=($!)
}

csi() {
  say "compiling cinder-csi-plugin and the csi external-provisioner (minutes, the first time)"
  test/bench/peers/build.sh "$LAB_CACHE/bench" cinder-csi
  (umask 077; kubectl -n flex-provisioner get secret cinder -o 'jsonpath={.data.cloud\.conf}' | base64 -d >"$TMP/cloud.conf")
  peer plugin "$LAB_CACHE/bench/cinder-csi-plugin" --endpoint="unix://$TMP/csi.sock" --cloud-config="$TMP/cloud.conf" --cluster=bench \
    --provide-node-service=false --with-topology=false
  peer provisioner "$LAB_CACHE/bench/csi-provisioner" --kubeconfig="$LAB_KUBECONFIG" --csi-address="$TMP/csi.sock" --timeout=3m \
    --default-fstype=ext4 --extra-create-metadata --kube-api-qps=2000 --kube-api-burst=4000
  kubectl create -f - >/dev/null <<CLASS
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: $ns}
provisioner: cinder.csi.openstack.org
parameters: {type: lvm}
CLASS
  measure "$ns" "cinder-csi-plugin, external-provisioner" || { tail -n 20 "$TMP"/*.log >&2; die "cinder-csi-plugin: see above"; }
}

grep -q '^OS_AUTH_URL=' "$OPENRC" 2>/dev/null || die "Cinder with keystone is not up: MODE=keystone BACKENDS=lvm test/cinder/up.sh"
trap finish EXIT
trap 'exit 130' INT TERM
kubectl delete namespace "$ns" --ignore-not-found >/dev/null # that of a run before, which may still be terminating
kubectl create namespace "$ns" >/dev/null
loop
measure cinder-iscsi flex-provisioner
csi
awk -F '\t' -v n="$claims" 'NR == 1 { made = $2; gone = $3; printf "%-42s bound s  ratio  deleted s  ratio\n", n " volumes" }
  { printf "%-42s %7.1f  %5.2f  %9.1f  %5.2f\n", $1, $2, $2 / made, $3, $3 / gone }' "$TMP/rows"
