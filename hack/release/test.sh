#!/bin/bash
# test.sh DIR: builds a release of the commit that is checked out in two clones below DIR that share nothing but the Go cache, compares them, and checks
# what is in them; DIR/a/dist is then what a user would have. The second is built again for a registry: its images must stay the same.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
a=$1/a b=$1/longer/name/b
export VERSION=v0.1.0

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# refuses WHAT COMMAND...: the command must fail.
refuses() { ! "${@:2}" >/dev/null 2>&1 || die "$1 is not seen"; }

# digests CLONE: those of its images.
digests() { jq -r '.manifests[].digest' "$1"/dist/images/*/index.json; }

refuses "a version without a v" env VERSION=0.1.0 hack/release/release.sh
git clone -q . "$a"
touch "$a/left"
refuses "a change that is not committed" "$a/hack/release/release.sh"
rm "$a/left"
make -C "$a" release
(
  umask 077
  git clone -q "$a" "$b" # the same commit, whatever happens here meanwhile
  TZ=Asia/Tokyo LC_ALL=C.UTF-8 GOFLAGS=-buildvcs=true make -C "$b" release
)
diff "$a/dist/SHA256SUMS" "$b/dist/SHA256SUMS" || die "two builds of one commit differ"
hack/release/test-dist.sh "$a/dist" localhost

images=$(digests "$b")
printf x | dd of="$(find "$b/dist/images/flex-shell" -size +1M | head -1)" bs=1 seek=1000 conv=notrunc status=none
refuses "a changed byte of an image" env -C "$b/dist" sha256sum --check --quiet SHA256SUMS
make -C "$b" release REGISTRY=registry.example/flex
hack/release/test-dist.sh "$b/dist" registry.example/flex
[ "$(digests "$b")" = "$images" ] || die "the name of a registry changes the images"
