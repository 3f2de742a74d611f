#!/bin/bash
# build.sh: a Debian chroot with Cinder, keystone, tgt and userspace initiators in $LAB_CACHE/cinder-rootfs; with Ceph
# when BACKENDS names it. Instant when it is there. A tree in the making has another name, and only a finished one gets
# the right name: what an interrupted build leaves is never used, and the next build removes it.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=test/debian.sh
. "$CINDER_SRC/../debian.sh"
BACKENDS=${BACKENDS:-lvm,lvmmp,fc}
SUITE=$CINDER_SUITE
NEW=$CINDER_ROOTFS.new
OLD=$CINDER_ROOTFS.old
LOG=$CINDER_ROOTFS.log
BUILT=$CINDER_ROOTFS/.built # "base KEY", and "ceph KEY" if it has Ceph

packages() { grep -v '^#' "$CINDER_SRC/rootfs/$1.txt"; }

# base_system CONF: policy-rc.d keeps packages from starting daemons, preseed.txt from asking questions. mmdebstrap
# mounts in the tree: in a namespace of its own, an interrupted one leaves no mounts.
# shellcheck disable=SC2016 # mmdebstrap's hooks get the tree as their own $1
base_system() {
  local sources
  mapfile -t sources < <(find "$1" -name 'machine.*')
  TMPDIR=$1 unshare --mount --propagation private \
    mmdebstrap --verbose --mode=root --variant=minbase --aptopt="$1/apt.conf" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --setup-hook='cp -a /etc/apt/auth.conf* "$1/etc/apt/" 2>/dev/null || true' \
    --essential-hook='printf "#!/bin/sh\nexit 101\n" >"$1/usr/sbin/policy-rc.d"; chmod 755 "$1/usr/sbin/policy-rc.d"' \
    --essential-hook='chroot "$1" debconf-set-selections <'"$CINDER_SRC/rootfs/preseed.txt" \
    --customize-hook='rm -rf "$1"/etc/apt/auth.conf* "$1/etc/apt/apt.conf.d/99mmdebstrap"' \
    --customize-hook="$CINDER_SRC/rootfs/finish.sh \"\$1\"" \
    --include="$(packages packages | paste -sd,)" \
    "$SUITE" "$NEW" "${sources[@]}"
}

# add_packages CONF PACKAGE...: the machine's apt works on the tree from outside, as mmdebstrap does.
add_packages() {
  local conf=$1
  shift
  if compgen -G "$conf/machine.*" >/dev/null; then
    rm -rf "$NEW/etc/apt/sources.list" "$NEW"/etc/apt/sources.list.d/*
    cp "$conf"/machine.* "$NEW/etc/apt/sources.list.d/"
  fi
  {
    printf '%s "%s";\n' Dir "$NEW" Dir::State::Status "$NEW/var/lib/dpkg/status" DPkg::Chroot-Directory "$NEW" \
      Dir::Bin::dpkg dpkg Dir::Etc::netrc /etc/apt/auth.conf Dir::Etc::netrcparts /etc/apt/auth.conf.d/ \
      Dir::Etc::Trusted /etc/apt/trusted.gpg Dir::Etc::TrustedParts /etc/apt/trusted.gpg.d/
    cat "$conf/apt.conf"
  } >"$conf/outer.conf"
  # shellcheck disable=SC2016 # the inner shell's variables
  APT_CONFIG=$conf/outer.conf DEBIAN_FRONTEND=noninteractive unshare --mount --propagation private bash -euxc '
    root=$1; shift
    mount -t proc proc "$root/proc"; mount --rbind /sys "$root/sys"; mount --rbind /dev "$root/dev"
    apt-get update; apt-get install --yes "$@"; apt-get clean; rm -rf "$root"/var/lib/apt/lists/*' bash "$NEW" "$@"
}

# The keys: what goes into a tree, and how (the functions' code without their comments).
base_key() {
  key_of "$(packages packages)" "$(cat "$CINDER_SRC"/rootfs/{preseed.txt,finish.sh})" "$(declare -f base_system)"
}
ceph_key() { key_of "$(packages packages-ceph)" "$(declare -f add_packages)"; }
key_of() { printf '%s\n' "$SUITE" "$@" | sha256sum | cut -c1-16; }

built() { grep -qx "$1" "$BUILT" 2>/dev/null; }

in_use() { [ "$(cat "$CINDER_STATE/release" 2>/dev/null)" = "$CINDER" ] && [ -n "$(ls "$CINDER_STATE/pids" 2>/dev/null)" ]; }

# Renames only, so that there is never half a tree under the right name.
publish() {
  printf '%s\n' "$@" >"$NEW/.built"
  [ ! -e "$CINDER_ROOTFS" ] || mv "$CINDER_ROOTFS" "$OLD"
  mv "$NEW" "$CINDER_ROOTFS"
  rm -rf --one-file-system "$OLD"
}

build_base() {
  say "building the Cinder chroot from Debian packages, once (2 to 4 minutes, 1 GB in $LAB_CACHE)"
  with_progress "Cinder chroot" base_system "$1"
  publish "base $(base_key)"
}

build_ceph() {
  say "adding Ceph to the Cinder chroot, once (half a minute, 250 MB)"
  cp -a --reflink=auto "$CINDER_ROOTFS" "$NEW"
  # shellcheck disable=SC2046 # one word per package
  with_progress "Ceph" add_packages "$1" $(packages packages-ceph)
  publish "base $(base_key)" "ceph $(ceph_key)"
}

clean_up() {
  end_step
  rm -rf --one-file-system "$NEW" "$OLD" "$conf"
}

base=$(base_key) ceph=$(ceph_key)
if built "base $base" && { ! has_backend ceph || built "ceph $ceph"; }; then exit 0; fi

need_tools mmdebstrap:mmdebstrap
mkdir -p "$LAB_CACHE"
exec 8>"$CINDER_ROOTFS.lock" # not the lab's lock: a cluster may be built or changed meanwhile
flock -n 8 || { say "another command is building the Cinder chroot: waiting for it"; flock 8; }
! in_use || die "Cinder is running from the chroot that must be rebuilt: test/cinder/down.sh first"
step=
conf=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT TERM
rm -rf --one-file-system "$NEW" "$OLD"
machine_sources "$conf"
machine_apt_conf >"$conf/apt.conf"
built "base $base" || build_base "$conf"
! has_backend ceph || built "ceph $ceph" || build_ceph "$conf"
say "Cinder chroot: $(du -sh --one-file-system "$CINDER_ROOTFS" | cut -f1), $(tr '\n' ' ' <"$BUILT")"
