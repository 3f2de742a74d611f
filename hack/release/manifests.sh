#!/bin/bash
# manifests.sh: what is applied in one piece, of the manifests in $DIST/deploy: install.yaml, the same with the namespace for directories of nodes, and
# the Helm chart, whose links become files. release.sh sets the environment.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

go tool kustomize build "$DIST/deploy/base" >"$DIST/install.yaml"
go tool kustomize build "$DIST/deploy/node-directories" >"$DIST/install-node-directories.yaml"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --dereference --hard-dereference \
  --transform='s,^chart,flex-provisioner,' -C "$DIST/deploy" -cf - chart | gzip -n9 >"$DIST/flex-provisioner-${VERSION#v}.tgz"
