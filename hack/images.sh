#!/bin/bash
# images.sh: builds every image of the project FROM scratch and prints the archive of each. Static
# binaries, no timestamps: the same source gives the same content.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/cluster/env.sh
. test/cluster/env.sh

TAG=${TAG:-dev}
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

# go_image NAME DOCKERFILE: one static binary, and nothing else.
go_image() {
  local archive
  mkdir -p "$context/$1/bin"
  cp "bin/$1" "$context/$1/bin/"
  archive=$(test/cluster/build-image.sh "$3:$TAG" "$context/$1" "$2")
  hack/check-image.sh --only "/$1" "$archive"
  echo "$archive"
}

# shell_files NAME SCRIPT: Debian's static bash and busybox, flex, and the script.
shell_files() {
  local dir=$context/$1
  mkdir -p "$dir/root"
  install -m 0755 /bin/bash-static "$dir/bash"
  install -m 0755 /bin/busybox "$dir/busybox"
  install -m 0755 bin/flex "$dir/flex"
  install -m 0755 "$2" "$dir/provision"
}

# shell_image NAME DOCKERFILE
shell_image() {
  local archive
  archive=$(test/cluster/build-image.sh "$1:$TAG" "$context/$1" "$2")
  hack/check-image.sh "$archive"
  echo "$archive"
}

# bash_image NAME SCRIPT: with kubectl.
bash_image() {
  shell_files "$1" "$2"
  install -m 0755 "$KUBE_BIN/kubectl" "$context/$1/kubectl"
  shell_image "$1" scripts/Dockerfile.bash
}

# tools_image NAME SCRIPT PROGRAM...: with programs of Debian and their libraries.
tools_image() {
  shell_files "$1" "$2"
  hack/with-libraries.sh "$context/$1/root" "${@:3}"
  shell_image "$1" scripts/Dockerfile.tools
}

need_tools /bin/bash-static:bash-static /bin/busybox:busybox-static buildah:buildah jq:jq btrfs:btrfs-progs losetup:mount
[ -x "$KUBE_BIN/kubectl" ] || test/cluster/build.sh
go_image flex-dispatcher Dockerfile.dispatcher flex-dispatcher
go_image cinder-provisioner Dockerfile.cinder cinder-provisioner
bash_image directory-provisioner scripts/directory-provisioner.sh
bash_image file-server-provisioner scripts/file-server-provisioner.sh
bash_image custom-iscsi-provision scripts/environment-provisioner.sh
bash_image nfs-provisioner scripts/nfs-provisioner.sh
bash_image seed-provisioner scripts/seed-provisioner.sh
bash_image isolated-provisioner scripts/isolated-provisioner.sh
tools_image btrfs-provisioner scripts/btrfs-provisioner.sh btrfs
tools_image loop-provisioner scripts/loop-provisioner.sh
tools_image loop-attacher scripts/loop-attacher.sh losetup
