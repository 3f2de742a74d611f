#!/bin/bash
# build.sh NAME: the image of a guest: root.img, vmlinuz, initrd.img, host-key.pub. Instant when it
# is there. What is in the making has another name, and only what is finished gets
# the right name: what an interrupted build leaves is never used, and the next one removes it.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"
# shellcheck source=../debian.sh
. "$VM/../debian.sh"

VM_IMAGE=$(vm_image "$1")
SUITE=bookworm
LIST=packages.txt
! has_selinux "$1" || SUITE=trixie LIST=packages-selinux.txt
NEW=$VM_IMAGE.new
OLD=$VM_IMAGE.old
LOG=$VM_IMAGE.log

packages() { grep -v '^#' "$VM/$LIST"; }

# base_system CONF: mmdebstrap mounts in the tree: in a namespace of its own, an interrupted one
# leaves no mounts. Drivers of other hardware are two thirds of the kernel's package.
# shellcheck disable=SC2016 # mmdebstrap's hooks get the tree as their own $1
base_system() {
  local sources
  local exclude=()
  local dir
  mapfile -t sources < <(find "$1" -name 'machine.*')
  for dir in gpu media net/wireless net/ethernet staging iio hwmon usb; do
    exclude+=(--dpkgopt="path-exclude=/lib/modules/*/kernel/drivers/$dir/*")
  done
  for dir in man doc; do
    exclude+=(--dpkgopt="path-exclude=/usr/share/$dir/*")
  done
  TMPDIR=$1 unshare --mount --propagation private \
    mmdebstrap --verbose --mode=root --variant=minbase --aptopt="$1/apt.conf" "${exclude[@]}" \
    --setup-hook='cp -a /etc/apt/auth.conf* "$1/etc/apt/" 2>/dev/null || true' \
    --essential-hook='mkdir -p "$1/etc/initramfs-tools"' \
    --essential-hook="cp -r '$VM/files/.' \"\$1\"" \
    --customize-hook='rm -rf "$1"/etc/apt/auth.conf* "$1/etc/apt/apt.conf.d/99mmdebstrap"' \
    --customize-hook="$VM/finish.sh \"\$1\"" \
    --include="$(packages | paste -sd,)" --components=main,contrib \
    "$SUITE" "$NEW/root" "${sources[@]}"
}

# image makes the disk of the tree. It is sparse.
image() {
  local root=$NEW/root
  cp "$root"/boot/vmlinuz-* "$NEW/vmlinuz"
  cp "$root"/boot/initrd.img-* "$NEW/initrd.img"
  cp "$root/etc/ssh/ssh_host_ed25519_key.pub" "$NEW/host-key.pub"
  rm "$root"/boot/{vmlinuz,initrd.img}-*
  truncate -s 8G "$NEW/root.img"
  mkfs.ext4 -q -d "$root" "$NEW/root.img"
  rm -rf --one-file-system "$root"
}

# The key: what the image is made from.
key() {
  {
    echo "$SUITE"
    packages
    declare -f base_system image
    cat "$VM/finish.sh"
    cd "$VM/files"
    find . -type f -printf '%m %p\n' -exec cat {} +
  } | sha256sum | cut -c1-16
}

clean_up() {
  end_step
  rm -rf --one-file-system "$NEW" "$OLD" "$conf"
}

built() { [ "$(cat "$VM_IMAGE/.built" 2>/dev/null)" = "$(key)" ]; }

! built || exit 0
need_tools mmdebstrap:mmdebstrap mkfs.ext4:e2fsprogs
mkdir -p "$LAB_CACHE"
exec 8>"$VM_IMAGE.lock" # not the lab's lock: a cluster may be built or changed meanwhile
flock -n 8 || { say "another command builds the guests' image: waiting for it"; flock 8; }
! built || exit 0
[ -z "$(vm_names)" ] || die "guests run from the image that must be rebuilt: test/vm/down.sh first"
step=
conf=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT TERM
rm -rf --one-file-system "$NEW" "$OLD"
mkdir "$NEW"
machine_sources "$conf"
find "$conf" -name 'machine.*' -exec sed -i -E 's/\bmain\b/main contrib/' {} + # ZFS
machine_apt_conf >"$conf/apt.conf"
say "building the guests' image from Debian packages, once (10 to 15 minutes)"
with_progress "guests' image" base_system "$conf"
with_progress "guests' disk" image
key >"$NEW/.built"
[ ! -e "$VM_IMAGE" ] || mv "$VM_IMAGE" "$OLD"
mv "$NEW" "$VM_IMAGE"
say "guests' image: $(du -sh "$VM_IMAGE" | cut -f1)"
