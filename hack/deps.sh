#!/bin/bash
# deps.sh [TOOL:PACKAGE...]: installs what the project needs on a bare Debian 12, and these (and says nothing when it is all there).
# Go itself is not installed by it: see go.mod for the version.
set -euo pipefail

# tool:package. A tool that is on PATH is used wherever it comes from: docker's containerd.io, for
# one, brings a runc and conflicts with Debian's.
tools="
  curl:curl  openssl:openssl  jq:jq  git:git  python3:python3  ssh:openssh-client
  make:make  gcc:gcc  shellcheck:shellcheck
  ip:iproute2  nsenter:util-linux  pgrep:procps  sysctl:procps  mount:mount
  runc:runc  buildah:buildah  mmdebstrap:mmdebstrap
  nft:nftables  iptables:iptables  conntrack:conntrack  ethtool:ethtool  socat:socat
  qemu-storage-daemon:qemu-system-common  iscsi-inq:libiscsi-bin  fusermount3:fuse3  mkfs.xfs:xfsprogs  mkfs.ext4:e2fsprogs
  btrfs:btrfs-progs  losetup:mount
"
# Debian's own files are wanted here: static binaries, headers, plugins that have no name on PATH.
packages="
  busybox-static bash-static containernetworking-plugins
  libc6-dev ca-certificates qemu-block-extra
"

# missing [TOOL:PACKAGE...]: the packages.
missing() {
  local pair
  for pair in $tools "$@"; do
    PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || echo "${pair##*:}"
  done
  # shellcheck disable=SC2086 # a list of names
  comm -23 <(printf '%s\n' $packages | sort) \
    <(dpkg-query -W -f '${Status} ${binary:Package}\n' $packages 2>/dev/null |
      sed -n 's/^install ok installed \([^:]*\).*/\1/p' | sort)
}

# hold_services: an installed package must not start a daemon. A policy that is there is kept.
hold_services() {
  [ ! -e /usr/sbin/policy-rc.d ] || return 0
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod +x /usr/sbin/policy-rc.d
}

apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" >&2; }

main() {
  local wanted
  mapfile -t wanted < <(missing "$@" | sort -u)
  [ ${#wanted[@]} -gt 0 ] || return 0
  echo "deps: installing ${wanted[*]}" >&2
  [ "$(id -u)" = 0 ] || { echo "error: run this as root" >&2; exit 1; }
  hold_services
  apt update
  apt install -y --no-install-recommends "${wanted[@]}"
}

main "$@"
