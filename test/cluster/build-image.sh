#!/bin/bash
# build-image.sh NAME:TAG CONTEXTDIR [DOCKERFILE]
# Builds localhost/NAME:TAG (a name that cannot be pulled) by buildah and writes it, as `docker save`
# would, to $LAB_CACHE/images/NAME.tar; prints that path. If the content has not changed, nothing is built.
# The same content gives the same bytes.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"

STORE=$LAB_CACHE/buildah
IMAGES=$LAB_CACHE/images

# key_of IMAGE CONTEXT DOCKERFILE: names, modes and content count, and how this script builds. Times
# and owners do not.
key_of() {
  {
    echo "$1"
    cat "$3" "${BASH_SOURCE[0]}"
    tar -C "$2" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --exclude=./.git -cf - .
  } | sha256sum | cut -d' ' -f1
}

# driver: overlay is fast; vfs copies every layer, and works where overlay cannot be mounted (in a
# container whose own root is an overlay, say). Asked of the kernel once, in the very directory.
driver() {
  [ -s "$STORE/driver" ] || probe_overlay >"$STORE/driver"
  cat "$STORE/driver"
}

probe_overlay() {
  local dir
  dir=$(mktemp -d "$STORE/probe.XXXXXX")
  mkdir "$dir"/{lower,upper,work,merged}
  if unshare --mount mount -t overlay overlay "$dir/merged" \
    -o "lowerdir=$dir/lower,upperdir=$dir/upper,workdir=$dir/work" 2>/dev/null; then
    echo overlay
  else
    say "overlay cannot be mounted under $STORE: buildah uses vfs, which is slower"
    echo vfs
  fi
  rm -rf "$dir"
}

# builder ARGS...: buildah with a store and settings of our own (by its own it makes /etc/cni/net.d), in
# a mount namespace of its own: its overlay store mounts itself and would leave that mount on the host.
builder() {
  printf '[network]\nnetwork_config_dir = "%s/net"\n' "$STORE" >"$STORE/containers.conf"
  unshare --mount --propagation private env CONTAINERS_CONF="$STORE/containers.conf" TMPDIR="$STORE/tmp" \
    buildah --root "$STORE/root" --runroot "$STORE/run" --storage-driver "$(driver)" "$@"
}

# Only the tar is wanted: what the last build of this name left without one is pruned, or the store
# would grow by a binary with every edit.
# In Docker's format an image has a host name in it that buildah makes up, and a container's ID.
build() { # IMAGE CONTEXT DOCKERFILE TAR
  local image=$1 context=$2 dockerfile=$3 tar=$4
  builder bud --isolation chroot --format oci --timestamp 0 -q \
    -t "$image" -f "$dockerfile" "$context" >/dev/null
  rm -f "$tar.new"
  builder push -q "$image" "docker-archive:$tar.new:$image" >&2
  mv "$tar.new" "$tar"
  builder rmi --prune >/dev/null
}

# Whatever --root says, root's buildah notes blobs in /var/lib/containers; those of other programs are not touched.
NOTES=/var/lib/containers
leave_no_notes() {
  [ ! -e $NOTES ] || return 0
  trap 'rm -f $NOTES/cache/blob-info-cache-v1.boltdb; rmdir $NOTES/cache $NOTES 2>/dev/null || true' EXIT
}

main() {
  [ $# -ge 2 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 64; }
  local image=localhost/${1#localhost/} context=$2 dockerfile=${3:-$2/Dockerfile} name tar key
  case ${image#localhost/} in *:*) ;; *) die "$1: a tag is wanted (NAME:TAG)" ;; esac
  [ -f "$dockerfile" ] || die "$dockerfile: no such file"
  need_tools buildah:buildah flock:util-linux
  name=${image#localhost/} name=${name%:*}
  tar=$IMAGES/${name//\//_}.tar
  mkdir -p "$IMAGES" "$STORE/tmp"

  key=$(key_of "$image" "$context" "$dockerfile")
  exec 8>"$STORE/lock"
  flock 8
  if [ ! -e "$tar" ] || [ "$(cat "$tar.key" 2>/dev/null)" != "$key" ]; then
    say "$image: building"
    rm -f "$tar.key"
    leave_no_notes
    build "$image" "$context" "$dockerfile" "$tar"
    echo "$key" >"$tar.key"
  fi
  echo "$tar"
}

main "$@"
