#!/bin/bash
# deploy.sh: loads the images into the lab's cluster and deploys the dispatcher and three classes.
# With Cinder up, the Secret that names it as well. FLEX_DEPLOY names another kustomization (than
# deploy/node-directories), and with FLEX_IMAGES=recipes the nodes have the images of all recipes.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh
# shellcheck source=deployment.sh
. hack/deployment.sh

kubectl() { test/cluster/kubectl.sh "$@"; }

say "building and loading the images"
images=(flex-dispatcher cinder-provisioner flex-shell custom-iscsi-provision)
[ "${FLEX_IMAGES:-}" != recipes ] || images+=(flex-shell-disk flex-shell-ceph)
built=$(hack/images.sh "${images[@]}") # a process substitution would hide its failure
mapfile -t archives <<<"$built"
test/cluster/load-image.sh "${archives[@]}"

say "deploying the dispatcher"
stamps_claims || say "this API server has no MutatingAdmissionPolicy v1: without deploy/claim-creator, images get no user name"
deployment | kubectl apply -f - >/dev/null
kubectl apply -f configmaps/cinder-iscsi.yaml -f configmaps/node-directory.yaml \
  -f configmaps/file-server.yaml >/dev/null

hack/cinder-secret.sh

# A new image under the same tag does not restart a Deployment by itself.
kubectl -n flex-system rollout restart deployment/flex-dispatcher >/dev/null
kubectl -n flex-system rollout status deployment/flex-dispatcher --timeout=120s >/dev/null
say "two replicas are ready"
