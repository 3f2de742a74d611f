#!/bin/bash
# run.sh DRIVER: Kubernetes' external-storage suite (build.sh) on the class of test/external/DRIVER, in the lab that is up, and its comparison with
# DRIVER/skips (outcome.sh). Nothing that it has made may be left in Kubernetes.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
# shellcheck source=../cluster/env.sh
. test/cluster/env.sh

driver=${1:?a folder of test/external}
dir=$PWD/test/external/$driver bin=$KUBE_BIN/external
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
kubectl() { test/cluster/kubectl.sh "$@"; }

# serve_every_class: the suite makes a class for each spec, under a name of its own.
serve_every_class() {
  local namespace
  namespace=$(sed -n 's/^ *flex-provisioner.io\/config-namespace: //p' "$dir/class.yaml")
  kubectl -n "${namespace:-flex-provisioner}" patch configmap "$driver" --type merge --patch '{"data": {"classes": "*"}}' >/dev/null
}

# left_out: an argument for each spec that skips leaves out, whose name ginkgo takes for a regular expression.
left_out() { sed -n 's/^- //p' "$dir/skips" | sed 's/[][\.*^$+?(){}|]/\\&/g; s/.*/--skip=&$/'; }

# suite: what no driver here has is left out by pattern: volumes that no class makes, Windows and snapshots.
suite() {
  local skips
  mapfile -t skips < <(left_out)
  KUBE_TEST_REPO_LIST=$PWD/test/external/registries.yaml in_control "$bin/ginkgo" run --procs="${PROCS:-4}" --no-color --timeout=40m \
    --output-dir="$TMP" --json-report=report.json --focus='Testpattern: (Dynamic PV|Generic Ephemeral-volume)' --skip='\(ntfs\)' "${skips[@]}" \
    "$bin/external.test" -- -kubeconfig="$LAB_KUBECONFIG" -repo-root="$PWD" -storage.testdriver="$dir/driver.yaml" \
    -allowed-not-ready-nodes=0 -minStartupPods=0
}

left() { kubectl get persistentvolumes,persistentvolumeclaims,volumeattachments --all-namespaces --output name; }
nothing_left() { [ -z "$(left)" ]; }

serve_every_class
say "running the external-storage suite of Kubernetes $KUBE on $driver"
began=$SECONDS
suite || true # whether it failed, and where, the report says
[ -z "${REPORTS:-}" ] || cp "$TMP/report.json" "$REPORTS/$driver.json"
[ -s "$TMP/report.json" ] || die "the suite has written no report"
passed=$(test/external/outcome.sh "$TMP/report.json" "$dir/skips")
say "$driver: $passed"
wait_for 120 nothing_left || die "left in Kubernetes: $(left | tr '\n' ' ')"
add_result noauth lvm "Kubernetes' external-storage suite, $driver" "${passed%% *}" "$((SECONDS - began))"
