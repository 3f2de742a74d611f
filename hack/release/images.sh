#!/bin/bash
# images.sh: writes the images of a release, those of images.txt, to $DIST/images, each an OCI
# layout for all platforms, and prints the name and the digest of each. The binaries are in
# $WORK/linux-ARCH. release.sh sets the environment.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

# image NAME ENTRYPOINT [FLAG...]: of the roots $WORK/roots/NAME-ARCH.
image() {
  local arch roots=()
  for arch in $ARCHES; do roots+=("linux/$arch=$WORK/roots/$1-$arch"); done
  echo "$1 $("$WORK/image" -o "$DIST/images/$1" -name "$REGISTRY/$1" -entrypoint "$2" "${@:3}" \
    -label org.opencontainers.image.version="$VERSION" \
    -label org.opencontainers.image.revision="$COMMIT" "${roots[@]}")"
}

# go_image NAME: one static binary, and nothing else.
go_image() {
  local arch
  for arch in $ARCHES; do
    install -D -m 0755 "$WORK/linux-$arch/$1" "$WORK/roots/$1-$arch/$1"
  done
  image "$1" "/$1"
}

# shell_image NAME: programs of Debian 13, and flex.
shell_image() {
  local arch root
  for arch in $ARCHES; do
    root=$WORK/roots/$1-$arch
    hack/release/shell.sh "$1" "$arch" "$root" >>"$WORK/debian"
    install -m 0755 "$WORK/linux-$arch/flex" "$root/bin"
  done
  hack/release/applets.sh "$WORK/roots/$1-$(go env GOHOSTARCH)/bin/busybox" "$WORK/roots/$1"-*/bin
  image "$1" /bin/bash -env PATH=/bin
}

(cd hack/release && go build -o "$WORK/image" .)
while read -r name; do
  case $name in
  flex-shell*) shell_image "$name" ;;
  *) go_image "$name" ;;
  esac
done <hack/release/images.txt
