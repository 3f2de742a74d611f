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

# bash_image NAME SCRIPT: Debian's static bash and busybox, flex, kubectl for the environment provisioner and the scripts of test/e2e, and the script.
bash_image() {
  local dir=$context/$1 archive
  mkdir -p "$dir/bin"
  install -m 0755 /bin/bash-static "$dir/bin/bash"
  install -m 0755 /bin/busybox bin/flex "$KUBE_BIN/kubectl" "$dir/bin"
  install -m 0755 "$2" "$dir/provision"
  archive=$(test/cluster/build-image.sh "$1:$TAG" "$dir" scripts/Dockerfile.bash)
  hack/check-image.sh "$archive"
  echo "$archive"
}

need_tools /bin/bash-static:bash-static /bin/busybox:busybox-static buildah:buildah jq:jq
[ -x "$KUBE_BIN/kubectl" ] || test/cluster/build.sh
go_image flex-dispatcher Dockerfile.dispatcher flex-dispatcher
go_image cinder-provisioner Dockerfile.cinder cinder-provisioner
bash_image directory-provisioner scripts/directory-provisioner.sh
bash_image file-server-provisioner scripts/file-server-provisioner.sh
bash_image custom-iscsi-provision scripts/environment-provisioner.sh
bash_image nfs-provisioner scripts/nfs-provisioner.sh
bash_image seed-provisioner scripts/seed-provisioner.sh
bash_image isolated-provisioner scripts/isolated-provisioner.sh
