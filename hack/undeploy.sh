#!/bin/bash
# undeploy.sh: takes away from the lab's cluster what deploy.sh brought: the dispatcher, and three
# classes with their configs. Claims stay bound, but no volume is deleted from the storage any more:
# the script lists those that remain. Volumes whose Secrets were in the namespaces of the configs
# cannot be mounted any more. FLEX_DEPLOY names another kustomization, as for deploy.sh.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh
# shellcheck source=deployment.sh
. hack/deployment.sh

kubectl() { test/cluster/kubectl.sh "$@"; }

[ -x bin/flex-dispatcher ] || die "bin/flex-dispatcher is missing: make build"

say "deleting the dispatcher"
kubectl -n flex-system delete deployment flex-dispatcher --ignore-not-found --cascade=foreground --timeout=2m >/dev/null

# Only the dispatcher removes its finalizers, and a namespace cannot be deleted while a Job in it carries one.
say "releasing the finalizers"
in_control bin/flex-dispatcher uninstall --yes --kubeconfig "$LAB_KUBECONFIG"

say "deleting roles, policies, namespaces and classes"
kubectl delete --ignore-not-found -f configmaps/cinder-iscsi.yaml -f configmaps/node-directory.yaml \
  -f configmaps/file-server.yaml >/dev/null
deployment | kubectl delete -f - --ignore-not-found --timeout=3m >/dev/null ||
  die "some objects still exist: run this again, since a Job may have created a pod after its finalizer was removed"
say "nothing of the dispatcher is left in the cluster"
