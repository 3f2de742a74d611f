#!/bin/bash
# run.sh: Kubernetes' external-storage suite (build.sh) on each class that a folder here has a driver for, in the lab that is up, and its comparison
# with what that folder's skips expects (outcome.sh). Nothing that it has made may be left in Kubernetes.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
# shellcheck source=../cluster/env.sh
. ../cluster/env.sh

bin=$KUBE_BIN/external
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
kubectl() { "$CLUSTER/kubectl.sh" "$@"; }
drivers() { printf '%s\n' */driver.yaml | sed 's#/.*##'; }

# serve_every_class DRIVER: the suite makes a class for each spec, under a name of its own.
serve_every_class() {
  local namespace
  namespace=$(sed -n 's/^ *flex-provisioner.io\/config-namespace: //p' "$1/class.yaml")
  kubectl -n "${namespace:-flex-provisioner}" patch configmap "$1" --type merge --patch '{"data": {"classes": "*"}}' >/dev/null
}

# left_out DRIVER: an argument for each spec that is not to run, whose name ginkgo takes for a regular expression.
left_out() {
  sed -n "s/^- /[Driver: $1] /p" "$1/skips" | sed 's/[][\.*^$+?(){}|]/\\&/g; s/.*/--skip=&$/'
}

# suite: what no driver here has is left out by pattern: volumes that no class makes, Windows and snapshots. Most specs wait most of the time.
suite() {
  local skips tested
  mapfile -t skips < <(for driver in $(drivers); do left_out "$driver"; done)
  mapfile -t tested < <(for driver in $(drivers); do echo "-storage.testdriver=$PWD/$driver/driver.yaml"; done)
  KUBE_TEST_REPO_LIST=$PWD/registries.yaml in_control "$bin/ginkgo" run --procs=6 --no-color --timeout=40m --output-dir="$TMP" \
    --json-report=report.json --focus='Testpattern: (Dynamic PV|Generic Ephemeral-volume)' --skip='\(ntfs\)' "${skips[@]}" \
    "$bin/external.test" -- -kubeconfig="$LAB_KUBECONFIG" -repo-root="$PWD" "${tested[@]}" -allowed-not-ready-nodes=0 -minStartupPods=0
}

left() { kubectl get persistentvolumes,persistentvolumeclaims,volumeattachments --all-namespaces --output name; }
nothing_left() { [ -z "$(left)" ]; }

for driver in $(drivers); do serve_every_class "$driver"; done
say "running the external-storage suite of Kubernetes $KUBE"
began=$SECONDS failed=
suite || true # whether it failed, and where, the report says
[ -s "$TMP/report.json" ] || die "the suite has written no report"
for driver in $(drivers); do
  outcome=$(./outcome.sh "$TMP/report.json" "$driver") || { failed+=" $driver"; continue; }
  say "$driver: $outcome"
  add_result noauth lvm "Kubernetes' external-storage suite, $driver" "${outcome%% *}" $((SECONDS - began))
done
[ -z "$failed" ] || die "the external-storage suite has failed:$failed"
wait_for 120 nothing_left || die "left in Kubernetes: $(left | tr '\n' ' ')"
