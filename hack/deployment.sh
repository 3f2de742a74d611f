# shellcheck shell=bash
# deployment.sh: what deploy.sh applies and undeploy.sh deletes. Source it; it runs nothing. It needs the function kubectl.

# stamps_claims: whether the API server serves what deploy/claim-creator needs, as Kubernetes 1.36 and later do.
stamps_claims() { [[ $(kubectl get --raw /apis/admissionregistration.k8s.io/v1) == *'"mutatingadmissionpolicies"'* ]]; }

# deployment: the objects of the kustomization FLEX_DEPLOY, with the component for creators of claims where it can be had.
deployment() {
  local what=${FLEX_DEPLOY:-deploy/node-directories} tmp
  if ! stamps_claims; then
    kubectl kustomize "$what"
    return
  fi
  tmp=$(mktemp -d)
  printf 'resources: [%s]\ncomponents: [%s]\n' "$(realpath --relative-to="$tmp" "$what")" \
    "$(realpath --relative-to="$tmp" deploy/claim-creator)" >"$tmp/kustomization.yaml"
  kubectl kustomize "$tmp"
  rm -rf "$tmp"
}
