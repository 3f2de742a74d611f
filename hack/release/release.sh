#!/bin/bash
# release.sh (make release): builds all of a release into dist/, without root. VERSION=v0.1.0 is required. REGISTRY=registry.example/path is where the
# images will be; without it they are localhost/NAME, as which nodes import them. The same commit gives the same bytes: docs/release.md.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
unset GOFLAGS GOEXPERIMENT GOAMD64 GOARM64 MAKEFLAGS # they would change the binaries
export LC_ALL=C DIST=$PWD/dist REGISTRY=${REGISTRY:-localhost} ARCHES='amd64 arm64'
umask 022

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# build OS BINARY...: those of one system.
build() {
  for arch in $ARCHES; do
    make -s build VERSION="$VERSION" COMMIT="$COMMIT" GOOS="$1" GOARCH="$arch" BIN="$WORK/$1-$arch" ${2:+BINARIES="$2"}
  done
}

# name_images: the manifests name the images by digest, and so do those in the pages.
name_images() {
  local name digest
  while read -r name digest; do
    # "image: ", and the dispatcher's "--script-image=".
    sed -i "s#\(image\(: \|=\)\)localhost/$name:dev#\1$REGISTRY/$name@$digest#" \
      "$DIST"/{configmaps,deploy/*}/*.yaml "$DIST"/{,docs/{,recipes/}}*.md
  done <"$WORK/images"
  sed -i "s|^VERSION=.* REGISTRY=.*|VERSION=$VERSION REGISTRY=$REGISTRY|" "$DIST/docs/install.md"
  digest=$(sed -n 's/^flex-dispatcher //p' "$WORK/images")
  sed -i "s|newName: localhost/|newName: $REGISTRY/|; s|newTag: dev|digest: $digest|" "$DIST/deploy/base/kustomization.yaml"
  sed -i "s|^registry: .*|registry: $REGISTRY|" "$DIST/deploy/chart/values.yaml"
  name_in_chart image flex-dispatcher
  name_in_chart scriptImage flex-shell
  sed -i "s|^version: .*|version: ${VERSION#v}|; s|^appVersion: .*|appVersion: $VERSION|; /^# A release sets both/d" "$DIST/deploy/chart/Chart.yaml"
}

# name_in_chart VALUE IMAGE: the digest of an image, in the chart's value for it.
name_in_chart() {
  local digest
  digest=$(sed -n "s/^$2 //p" "$WORK/images")
  sed -i "/^$1:/,/^[a-z]/ s|digest: \"\"|digest: $digest|" "$DIST/deploy/chart/values.yaml"
}

# notes: what CHANGELOG.md says of the version, or of the next one.
notes() {
  local of=$VERSION
  grep -q "^## $of\( \|$\)" CHANGELOG.md || { of=$(awk '/^## / { print $2; exit }' CHANGELOG.md); echo "CHANGELOG.md has no heading \"## $VERSION\": the notes are those of \"## $of\"" >&2; }
  awk -v of="$of" '/^## / { on = $2 == of } on' CHANGELOG.md
}

[[ ${VERSION:-} =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || die "VERSION=${VERSION:-}: a version such as v0.1.0 is wanted"
[ -z "$(git status --porcelain)" ] || die "git status shows changes: what is released must be a commit"
COMMIT=$(git rev-parse HEAD)
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export VERSION COMMIT WORK
build linux
build darwin kubectl-flex
rm -rf "$DIST" && mkdir "$DIST"
git archive HEAD README.md CHANGELOG.md LICENSE SECURITY.md configmaps deploy docs scripts ':!*.go' ':!docs/site' | tar -xf - -C "$DIST"
hack/release/images.sh >"$WORK/images"
name_images
hack/release/manifests.sh
hack/release/plugin.sh
notes >"$DIST/RELEASE_NOTES.md"
hack/release/attest.sh
cd "$DIST"
find . -type f -printf '%P\n' | sort | xargs -d '\n' sha256sum >"$WORK/SHA256SUMS"
mv "$WORK/SHA256SUMS" .
echo "dist/ is $VERSION of $REGISTRY, commit $COMMIT: $(wc -l <SHA256SUMS) files, $(du -sm . | cut -f1) MB"
