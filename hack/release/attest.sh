#!/bin/bash
# attest.sh: what a release is made of, sbom.spdx.json, and how it was made, provenance.json. Neither is signed. release.sh sets the environment.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

# built: of each binary that is shipped what its build information says.
built() {
  local arch name
  for arch in $ARCHES; do
    for name in flex-dispatcher cinder-provisioner flex kubectl-flex; do of_binary linux "$arch" "$name"; done
    of_binary darwin "$arch" kubectl-flex
  done
}

of_binary() { # OS ARCH NAME
  local file=$WORK/$1-$2/$3
  go version -m -json "$file" | jq --arg os "$1" --arg arch "$2" --arg name "$3" --arg sha256 "$(sha256sum <"$file" | cut -d' ' -f1)" \
    '. + {$os, $arch, $name, $sha256}'
}

debian=$(sort -u "$WORK/debian")
built | jq -s --arg version "$VERSION" --arg commit "$COMMIT" --arg created "$(TZ=UTC git show -s --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)" \
  --arg debian "$debian" -f sbom.jq >"$DIST/sbom.spdx.json"
(cd "$DIST" && find . -type f -printf '%P\n' | sort | xargs -d '\n' sha256sum) |
  jq -nR --arg version "$VERSION" --arg commit "$COMMIT" --arg registry "$REGISTRY" --arg go "$(go env GOVERSION)" --arg debian "$debian" \
    -f provenance.jq >"$WORK/provenance.json"
mv "$WORK/provenance.json" "$DIST/"
