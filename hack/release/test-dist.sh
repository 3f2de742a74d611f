#!/bin/bash
# test-dist.sh DIST REGISTRY: what is in a release that make release has written fits together, and its images and its plugin can be used by those who get them.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
export DIST=$1 REGISTRY=$2
TMP=$(mktemp -d)
registry=
trap '[ -z "$registry" ] || kill "$registry"; rm -rf "$TMP"' EXIT

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# push: what a registry has after the push is what the manifests name. Its content is in memory.
push() {
  local image digest
  go build -o "$TMP/crane" github.com/google/go-containerregistry/cmd/crane
  "$TMP/crane" registry serve --address 127.0.0.1:0 2>"$TMP/registry" &
  registry=$!
  until port=$(sed -n 's/.*serving on port //p' "$TMP/registry") && [ -n "$port" ]; do sleep 0.1; done
  for image in "$DIST"/images/*; do
    digest=$("$TMP/crane" push "$image" "127.0.0.1:$port/flex/${image##*/}:v1" 2>"$TMP/push") || die "$(cat "$TMP/push")"
    [ "${digest##*@}" = "$(jq -r '.manifests[].digest' "$image/index.json")" ] || die "the registry has $digest"
  done
}

# programs: those for the other architecture find their libraries, and start.
programs() {
  local image root file
  ./debian.sh "$(go env GOHOSTARCH)" "$TMP/emulator" qemu-user-static >/dev/null
  for image in "$DIST"/images/*; do
    root=$TMP/${image##*/}
    mkdir "$root"
    "$TMP/crane" export --platform linux/arm64 "127.0.0.1:$port/flex/${image##*/}:v1" - | tar -x -C "$root"
    while read -r file; do
      "$TMP/emulator/usr/bin/qemu-aarch64-static" -L "$root" "$file" -V >"$TMP/log" 2>&1 || true # some refuse the flag, but have started
      ! grep -E 'loading shared libraries|Could not open|target signal' "$TMP/log" || die "$file does not start"
    done < <(find "$root" -type f ! -path '*/lib/*' -exec sh -c 'head -c 4 "$1" | grep -q ELF' _ {} \; -print)
  done
}

# plugin: krew compares the archive with its manifest.
plugin() {
  local archive
  archive=$(echo "$DIST"/kubectl-flex_*_linux_"$(go env GOHOSTARCH).tar.gz")
  GOBIN=$TMP go install sigs.k8s.io/krew/cmd/krew@v0.4.3
  KREW_ROOT=$TMP/plugins "$TMP/krew" install --manifest="$DIST/flex.yaml" --archive="$archive" </dev/null
  [[ $archive == *_"$("$TMP/plugins/bin/kubectl-flex" --version | sed 's/.* version \([^ ]*\).*/\1/')"_* ]] || die "krew has installed another version"
}

(cd "$DIST" && sha256sum --check --quiet SHA256SUMS)
go test -count=1 -tags dist .
(cd ../../test/chart && go test -count=1 -tags dist -run OfTheRelease .)
push
programs
plugin
