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

# image_of_scripts NAME DIR DOCKERFILE
image_of_scripts() {
  local archive
  archive=$(test/cluster/build-image.sh "$1:$TAG" "$2" "$3")
  hack/check-image.sh "$archive"
  echo "$archive"
}

# bash_image NAME SCRIPT: Debian's static bash and busybox, kubectl, flex, and the script.
bash_image() {
  local dir=$context/$1
  mkdir -p "$dir"
  install -m 0755 /bin/bash-static "$dir/bash"
  install -m 0755 /bin/busybox "$dir/busybox"
  install -m 0755 bin/flex "$dir/flex"
  install -m 0755 "$KUBE_BIN/kubectl" "$dir/kubectl"
  install -m 0755 "$2" "$dir/provision"
  image_of_scripts "$1" "$dir" scripts/Dockerfile.bash
}

# programs_image NAME PROGRAM...: the same without kubectl, and with programs that need libraries, such as curl. What runs on a box is beside the script.
programs_image() {
  local recipe=$1 dir=$context/$1
  shift
  hack/with-libraries.sh "$dir" "$@"
  install -m 0755 /bin/bash-static "$dir/bin/bash"
  install -m 0755 /bin/busybox bin/flex "$dir/bin/"
  install -m 0755 "scripts/$recipe-provisioner.sh" "$dir/provision"
  if [ -e "scripts/$recipe-on-box.sh" ]; then
    install -m 0644 scripts/box.sh "$dir/box"
    install -m 0644 "scripts/$recipe-on-box.sh" "$dir/on-box"
    mkdir "$dir/etc" # ssh asks who runs it
    echo "flex:x:65532:65532::/tmp:/bin/bash" >"$dir/etc/passwd"
  fi
  image_of_scripts "$recipe-provisioner" "$dir" scripts/Dockerfile.programs
}

need_tools /bin/bash-static:bash-static /bin/busybox:busybox-static buildah:buildah jq:jq curl:curl ssh:openssh-client
[ -x "$KUBE_BIN/kubectl" ] || test/cluster/build.sh
go_image flex-dispatcher Dockerfile.dispatcher flex-dispatcher
go_image cinder-provisioner Dockerfile.cinder cinder-provisioner
bash_image directory-provisioner scripts/directory-provisioner.sh
bash_image file-server-provisioner scripts/file-server-provisioner.sh
bash_image custom-iscsi-provision scripts/environment-provisioner.sh
bash_image nfs-provisioner scripts/nfs-provisioner.sh
bash_image seed-provisioner scripts/seed-provisioner.sh
bash_image isolated-provisioner scripts/isolated-provisioner.sh
programs_image http curl jq
programs_image iscsi-target ssh jq
programs_image lvm ssh jq
programs_image zfs ssh jq
