#!/bin/bash
# plugin.sh: the archives of kubectl flex, and its manifest for krew, flex.yaml. release.sh sets the environment.
# Those for Linux also have flex, which belongs in images with scripts.
set -euo pipefail

platforms=
for os in linux darwin; do
  for arch in $ARCHES; do
    archive=kubectl-flex_${VERSION}_${os}_$arch.tar.gz
    cp LICENSE "$WORK/$os-$arch/"
    programs=(kubectl-flex)
    [ "$os" != linux ] || programs+=(flex)
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$WORK/$os-$arch" -cf - LICENSE "${programs[@]}" |
      gzip -n9 >"$DIST/$archive"
    platforms+="
    - selector: {matchLabels: {os: $os, arch: $arch}}
      uri: https://github.com/flex-provisioner/flex-provisioner/releases/download/$VERSION/$archive
      sha256: $(sha256sum <"$DIST/$archive" | cut -d' ' -f1)
      bin: kubectl-flex"
  done
done
cat >"$DIST/flex.yaml" <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: flex
spec:
  version: $VERSION
  homepage: https://github.com/flex-provisioner/flex-provisioner
  shortDescription: Explain and test volumes of flex-provisioner
  description: |
    Says why a claim is not bound or a volume not deleted, and what to do about it.
    Tests in a cluster whether an image keeps the contract of flex-provisioner.
  platforms:$platforms
END
