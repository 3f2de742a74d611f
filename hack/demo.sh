#!/bin/bash
# demo.sh: from nothing to a claim on a real Cinder that pods on two nodes mount, to a file in a directory volume, to a claim that
# cannot be served, and back. KEEP=1 leaves everything running. Whatever was up before is left up. What is built says so in a log.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh
# shellcheck source=demo-lib.sh
. hack/demo-lib.sh

LOG=$LAB_CACHE/demo.log
TIMES=$LAB_CACHE/demo-seconds # what each step took the last time
# name|seconds the first time|command
STEPS=(
  "packages of this machine|60|make deps"
  "our programs|90|make build"
  "Kubernetes, from its source|300|test/cluster/build.sh"
  "two nodes|20|test/cluster/up.sh"
  "Cinder, from Debian's packages|240|MODE=noauth BACKENDS=lvm,lvmmp,fc test/cinder/up.sh"
  "our images, and the dispatcher|210|hack/deploy.sh"
)

# down: what the demo has brought up is taken down, also when a step has failed.
down() {
  local status=$? part
  if [ -n "${KEEP:-}" ]; then
    # shellcheck disable=SC2016 # to be pasted
    [ "$status" != 0 ] || printf '%s\n' "" "kept running; to try next:" "  test/cluster/kubectl.sh apply -f deploy/examples/claim.yaml" \
      '  PATH=$PWD/bin:$PATH test/cluster/kubectl.sh flex why data' \
      "  test/cluster/kubectl.sh --namespace=flex-provisioner get jobs,pods --output=wide" \
      "to end it: make cluster-down cinder-down"
    return
  fi
  for part in "${OURS[@]}"; do "test/$part/down.sh" >>"$LOG" 2>&1 || { tail -n 20 "$LOG" >&2; status=1; }; done
  [ "$status" != 0 ] || printf '%s\n' "demo: done in $SECONDS s; two claims were bound, used and deleted, a third was explained, and nothing is left" \
    "next: KEEP=1 make demo   leaves it running, with three commands to try" \
    "      kubectl flex new   writes the folder of a provisioner of your own: docs/kubectl-flex.md"
  exit "$status"
}

mkdir -p "$LAB_CACHE"
: >"$LOG"
OURS=()
[ -e "$LAB_KUBECONFIG" ] || OURS+=(cluster)
[ -e "$LAB_STATE/cinder/settings" ] || OURS+=(cinder)
trap down EXIT
echo "what is built says so in $LOG"
run_steps
# shellcheck source=demo-claims.sh
. hack/demo-claims.sh
