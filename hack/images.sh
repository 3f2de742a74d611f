#!/bin/bash
# images.sh [NAME...]: builds images of the project FROM scratch, all of a release or these, and
# prints the archive of each. Static binaries, no timestamps: the same source gives the same
# content. custom-iscsi-provision is that of the original design's example, and needs the kubectl of
# the lab.
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
  archive=$(test/cluster/build-image.sh "$1:$TAG" "$context/$1" "$2")
  hack/check-image.sh --only "/$1" "$archive"
  echo "$archive"
}

# checked NAME DOCKERFILE: the archive of an image that starts no program as root.
checked() {
  local archive
  archive=$(test/cluster/build-image.sh "$1:$TAG" "$context/$1" "$2")
  hack/check-image.sh "$archive"
  echo "$archive"
}

# shell_image NAME: programs of Debian 13, which are fetched once. Remove $LAB_CACHE/NAME.key to have
# those of today.
shell_image() {
  local root=$LAB_CACHE/$1 key
  key=$(cat hack/release/{shell,debian,applets}.sh hack/with-libraries.sh | sha256sum)
  if [ "$(cat "$root.key" 2>/dev/null)" != "$key" ]; then
    say "$1: fetching programs of Debian 13"
    rm -rf "$root"
    hack/release/shell.sh "$1" "$(dpkg --print-architecture)" "$root" >/dev/null
    hack/release/applets.sh "$root/bin/busybox" "$root/bin"
    echo "$key" >"$root.key"
  fi
  cp -a "$root" "$context/$1"
  install -m 0755 bin/flex "$context/$1/bin"
  checked "$1" scripts/Dockerfile.shell
}

# bash_image NAME SCRIPT: a script as its own image, as docs/first-image.md makes one, with kubectl.
bash_image() {
  need_tools /bin/bash-static:bash-static /bin/busybox:busybox-static
  [ -x "$KUBE_BIN/kubectl" ] || test/cluster/build.sh
  mkdir -p "$context/$1/bin"
  install -m 0755 /bin/bash-static "$context/$1/bin/bash"
  install -m 0755 /bin/busybox bin/flex "$KUBE_BIN/kubectl" "$context/$1/bin"
  install -m 0755 "$2" "$context/$1/provision"
  checked "$1" scripts/Dockerfile.bash
}

# build NAME: one of them.
build() {
  case $1 in
  flex-dispatcher) go_image "$1" Dockerfile.dispatcher ;;
  cinder-provisioner) go_image "$1" Dockerfile.cinder ;;
  flex-shell*) shell_image "$1" ;;
  custom-iscsi-provision) bash_image "$1" scripts/environment-provisioner.sh ;;
  *) die "$1: no such image" ;;
  esac
}

need_tools buildah:buildah jq:jq readelf:binutils
images=("$@")
[ $# -gt 0 ] || mapfile -t images <hack/release/images.txt
for image in "${images[@]}"; do
  build "$image"
done
