#!/bin/bash
# images.sh [recipes]: builds the images of the project FROM scratch and prints the archive of each. Those of docs/recipes that no other test needs are built
# on request. Static binaries, no timestamps: the same source gives the same content.
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

# checked NAME ROOT DOCKERFILE: the archive of an image that starts no program as root.
checked() {
  local archive
  archive=$(test/cluster/build-image.sh "$1:$TAG" "$2" "$3")
  hack/check-image.sh "$archive"
  echo "$archive"
}

# script_image NAME SCRIPT [PROGRAM...]: Debian's static bash and busybox, flex, the script with its files, and programs of this machine with their libraries.
script_image() {
  local dir=$context/$1
  mkdir -p "$dir/bin"
  [ $# = 2 ] || hack/with-libraries.sh "$dir" "${@:3}"
  install -m 0755 /bin/bash-static "$dir/bin/bash"
  install -m 0755 /bin/busybox bin/flex "$dir/bin"
  hack/script-files.sh "$2" "$dir"
  checked "$1" "$dir" scripts/Dockerfile.bash
}

# bash_image NAME SCRIPT: with kubectl, for the environment provisioner and the scripts of test/e2e.
bash_image() {
  install -D -m 0755 "$KUBE_BIN/kubectl" "$context/$1/bin/kubectl"
  script_image "$1" "$2"
}

# shell_image NAME: programs of Debian 13, which are fetched once. Remove $LAB_CACHE/NAME.key to have
# those of today.
shell_image() {
  local root=$LAB_CACHE/$1 key
  key=$(cat hack/release/{shell,debian,applets}.sh hack/with-libraries.sh | sha256sum)
  if [ "$(cat "$root.key" 2>/dev/null)" != "$key" ]; then
    say "$1: fetching programs of Debian 13"
    rm -rf "$root"
    hack/release/shell.sh "$(dpkg --print-architecture)" "$root" >/dev/null
    hack/release/applets.sh "$root/bin/busybox" "$root/bin"
    echo "$key" >"$root.key"
  fi
  cp -a "$root" "$context/$1"
  install -m 0755 bin/flex "$context/$1/bin"
  checked "$1" "$context/$1" scripts/Dockerfile.shell
}

need_tools /bin/bash-static:bash-static /bin/busybox:busybox-static buildah:buildah jq:jq readelf:binutils
[ -x "$KUBE_BIN/kubectl" ] || test/cluster/build.sh
go_image flex-dispatcher Dockerfile.dispatcher flex-dispatcher
go_image cinder-provisioner Dockerfile.cinder cinder-provisioner
shell_image flex-shell
bash_image directory-provisioner scripts/directory-provisioner.sh
bash_image file-server-provisioner scripts/file-server-provisioner.sh
bash_image custom-iscsi-provision scripts/environment-provisioner.sh
bash_image nfs-provisioner scripts/nfs-provisioner.sh
bash_image seed-provisioner scripts/seed-provisioner.sh
bash_image isolated-provisioner scripts/isolated-provisioner.sh
[ "${1:-}" = recipes ] || exit 0
hack/deps.sh rbd:ceph-common >&2
script_image btrfs-provisioner scripts/btrfs-provisioner.sh btrfs flock
script_image nfs-btrfs-provisioner scripts/nfs-provisioner.sh btrfs flock
script_image loop-provisioner scripts/loop-provisioner.sh flock
script_image loop-attacher scripts/loop-attacher.sh losetup
script_image http-provisioner scripts/http-provisioner.sh curl jq
script_image iscsi-target-provisioner scripts/iscsi-target-provisioner.sh ssh jq
script_image lvm-provisioner scripts/lvm-provisioner.sh ssh jq
script_image zfs-provisioner scripts/zfs-provisioner.sh ssh jq
script_image ceph-rbd-provisioner scripts/ceph-rbd-provisioner.sh rbd jq
