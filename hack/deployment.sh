# shellcheck shell=bash
# deployment.sh: what deploy.sh applies and undeploy.sh deletes. Source it; it runs nothing. It needs the function kubectl.

# stamps_claims: whether the API server serves what deploy/claim-creator needs, as Kubernetes 1.36 and later do.
stamps_claims() { [[ $(kubectl get --raw /apis/admissionregistration.k8s.io/v1) == *'"mutatingadmissionpolicies"'* ]]; }

# deployment: the objects of the kustomization FLEX_DEPLOY on the nodes that an administrator has labelled, with the component for creators of claims where
# it can be had.
deployment() {
  local tmp component components=(dispatcher-nodes)
  stamps_claims && components+=(claim-creator)
  tmp=$(mktemp -d)
  {
    printf 'resources: [%s]\ncomponents:\n' "$(realpath --relative-to="$tmp" "${FLEX_DEPLOY:-deploy/node-directories}")"
    for component in "${components[@]}"; do echo "  - $(realpath --relative-to="$tmp" "deploy/$component")"; done
  } >"$tmp/kustomization.yaml"
  kubectl kustomize "$tmp"
  rm -rf "$tmp"
}
