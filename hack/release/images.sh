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

# script_image NAME SCRIPT [PROGRAM...]: bash, a script with its files, and programs.
script_image() {
  local arch root
  for arch in $ARCHES; do
    root=$WORK/roots/$1-$arch
    cp -a "$WORK/roots/bash-$arch" "$root"
    [ $# = 2 ] || hack/release/programs.sh "$root" "$arch" "${@:3}"
    hack/script-files.sh "$2" "$root"
  done
  image "$1" /provision -env PATH=/bin
}

# applets NAME: the names of busybox, in the roots of both architectures.
applets() {
  hack/release/applets.sh "$WORK/roots/$1-$(go env GOHOSTARCH)/bin/busybox" "$WORK/roots/$1"-*/bin
}

# shell_image NAME: programs of Debian 13, and flex.
shell_image() {
  local arch root
  for arch in $ARCHES; do
    root=$WORK/roots/$1-$arch
    hack/release/shell.sh "$arch" "$root" >>"$WORK/debian"
    install -m 0755 "$WORK/linux-$arch/flex" "$root/bin"
  done
  applets "$1"
  image "$1" /bin/bash -env PATH=/bin
}

(cd hack/release && go build -o "$WORK/image" .)
for arch in $ARCHES; do hack/release/bash.sh "$arch"; done
applets bash
go_image flex-dispatcher
go_image cinder-provisioner
shell_image flex-shell
script_image directory-provisioner scripts/directory-provisioner.sh
script_image file-server-provisioner scripts/file-server-provisioner.sh
script_image isolated-provisioner scripts/isolated-provisioner.sh
script_image nfs-provisioner scripts/nfs-provisioner.sh
script_image seed-provisioner scripts/seed-provisioner.sh
script_image btrfs-provisioner scripts/btrfs-provisioner.sh btrfs flock
script_image nfs-btrfs-provisioner scripts/nfs-provisioner.sh btrfs flock
script_image loop-provisioner scripts/loop-provisioner.sh flock
script_image loop-attacher scripts/loop-attacher.sh losetup
script_image http-provisioner scripts/http-provisioner.sh curl jq
script_image iscsi-target-provisioner scripts/iscsi-target-provisioner.sh ssh jq
script_image lvm-provisioner scripts/lvm-provisioner.sh ssh jq
script_image zfs-provisioner scripts/zfs-provisioner.sh ssh jq
script_image ceph-rbd-provisioner scripts/ceph-rbd-provisioner.sh rbd jq
