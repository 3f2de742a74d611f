#!/bin/bash
# smoke.sh: proves that the running cluster of two nodes is what the tests need. It prints one line for each fact.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"

SCRATCH=$(mktemp -d)
kubectl() { "$CLUSTER/kubectl.sh" -n smoke "$@"; }
on() { kubectl exec "client$1" -- "${@:2}"; }

# expect FACT WANTED CMD...: CMD prints exactly WANTED.
expect() {
  local fact=$1 wanted=$2 got
  shift 2
  got=$("$@" 2>&1) || true
  [ "$got" = "$wanted" ] || die "$fact: wanted '$wanted', got '$got'"
  say "ok: $fact"
}

clean() {
  lab_stop "$SCRATCH" storage KILL
  rm -rf "$SCRATCH"
  "$CLUSTER/kubectl.sh" delete namespace smoke --ignore-not-found --wait >/dev/null
}

make_image() {
  mkdir "$SCRATCH/context"
  cp /bin/busybox "$KUBE_BIN/kubectl" "$SCRATCH/context/"
  printf '%s\n' 'FROM scratch' 'COPY busybox kubectl /bin/' 'RUN ["/bin/busybox", "--install", "-s", "/bin"]' \
    'ENV PATH=/bin' >"$SCRATCH/context/Dockerfile"
  "$CLUSTER/load-image.sh" "$("$CLUSTER/build-image.sh" smoke:v1 "$SCRATCH/context")"
}

start() {
  "$CLUSTER/kubectl.sh" create namespace smoke >/dev/null
  kubectl apply -f "$CLUSTER/smoke.yaml" >/dev/null
  kubectl wait --for=condition=Ready pod/server pod/client1 pod/client2 --timeout=60s >/dev/null
  kubectl wait --for=condition=Complete job/by-label --timeout=60s >/dev/null
  kubectl wait --for=condition=Failed job/exit-65 --timeout=60s >/dev/null
  say "ok: kubectl wait saw three pods ready, one Job complete, one failed"
}

check_jobs() {
  local terminated='{.items[0].status.containerStatuses[0].state.terminated'
  expect 'the label node-restriction.kubernetes.io/flex-storage-network chose node1' node1 \
    kubectl get pods -l job-name=by-label -o 'jsonpath={.items[0].spec.nodeName}'
  expect 'its kubectl spoke to the API at the service address; kubectl logs shows it' pod/server \
    sh -c "'$CLUSTER/kubectl.sh' -n smoke logs job/by-label | grep server"
  expect 'exit code and termination message come back' '65 claim: no' \
    kubectl get pods -l job-name=exit-65 -o "jsonpath=$terminated.exitCode} $terminated.message}"
}

check_network() {
  local n pod service
  pod=$(kubectl get pod server -o 'jsonpath={.status.podIP}')
  service=$(kubectl get service server -o 'jsonpath={.spec.clusterIP}')
  echo storage >"$SCRATCH/name"
  lab_start "$SCRATCH" storage nsenter --net="/run/netns/$LAB_NETNS" busybox httpd -f -p 18080 -h "$SCRATCH"
  for n in 1 2; do
    expect "node$n: exec" "client$n" on $n hostname
    expect "node$n: API at the service address" ok on $n kubectl get --raw /readyz
    expect "node$n: a pod of node2 by its address" server on $n wget -qO- "$pod:8080/name"
    expect "node$n: a pod of node2 by its service" server on $n wget -qO- "$service/name"
    expect "node$n: what listens on $LAB_ADDR" storage on $n wget -qO- "$LAB_ADDR:18080/name"
    expect "node$n: what listens on $LAB_ADDR2" storage on $n wget -qO- "$LAB_ADDR2:18080/name"
  done
  expect 'the control namespace reaches a pod' server in_control curl -s "http://$pod:8080/name"
}

check_folders() {
  local n
  for n in 1 2; do
    on $n touch "/volumes/only-client$n"
    expect "node$n: hostPath holds its own file only" "only-client$n" on $n ls /volumes
    expect "node$n: and that file is in $KUBE_DIR/node$n/volumes" "only-client$n" ls "$KUBE_DIR/node$n/volumes"
  done
  expect 'the host has neither' '' ls "$KUBE_MOUNTS"
}

need_tools busybox:busybox-static curl:curl
trap clean EXIT
make_image
say 'ok: an image was built and loaded'
start
check_jobs
check_network
check_folders
