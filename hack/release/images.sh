#!/bin/bash
# images.sh: writes the images of a release to $DIST/images, each an OCI layout for all platforms, and prints the name and the digest of each. The
# binaries are in $WORK/linux-ARCH. release.sh sets the environment.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

# image NAME ENTRYPOINT [FLAG...]: of the roots $WORK/roots/NAME-ARCH.
image() {
  local arch roots=()
  for arch in $ARCHES; do roots+=("linux/$arch=$WORK/roots/$1-$arch"); done
  echo "$1 $("$WORK/image" -o "$DIST/images/$1" -name "$REGISTRY/$1" -entrypoint "$2" "${@:3}" \
    -label org.opencontainers.image.version="$VERSION" -label org.opencontainers.image.revision="$COMMIT" "${roots[@]}")"
}

# go_image NAME: one static binary, and nothing else.
go_image() {
  local arch
  for arch in $ARCHES; do install -D -m 0755 "$WORK/linux-$arch/$1" "$WORK/roots/$1-$arch/$1"; done
  image "$1" "/$1"
}

# bash_root ARCH: Debian's static bash and busybox, and flex.
bash_root() {
  local bin=$WORK/roots/bash-$1/bin
  mkdir -p "$bin"
  hack/release/debian.sh "$1" "$WORK/debian-$1" bash-static busybox-static >>"$WORK/debian"
  install -m 0755 "$WORK/debian-$1/bin/busybox" "$WORK/linux-$1/flex" "$bin"
  install -m 0755 "$WORK/debian-$1/bin/bash-static" "$bin/bash"
}

# links ARCH: a name for each applet. Both architectures have those of one configuration.
links() {
  local applet bin=$WORK/roots/bash-$1/bin
  "$WORK/roots/bash-$(go env GOHOSTARCH)/bin/busybox" --list | sort | while read -r applet; do
    [ -e "$bin/$applet" ] || ln -s busybox "$bin/$applet"
  done
}

# script_image NAME SCRIPT: bash and a script.
script_image() {
  local arch root
  for arch in $ARCHES; do
    root=$WORK/roots/$1-$arch
    cp -a "$WORK/roots/bash-$arch" "$root"
    install -m 0755 "$2" "$root/provision"
  done
  image "$1" /provision -env PATH=/bin
}

(cd hack/release && go build -o "$WORK/image" .)
for arch in $ARCHES; do bash_root "$arch"; done
for arch in $ARCHES; do links "$arch"; done
go_image flex-dispatcher
go_image cinder-provisioner
script_image directory-provisioner scripts/directory-provisioner.sh
script_image file-server-provisioner scripts/file-server-provisioner.sh
script_image isolated-provisioner scripts/isolated-provisioner.sh
script_image nfs-provisioner scripts/nfs-provisioner.sh
script_image seed-provisioner scripts/seed-provisioner.sh
