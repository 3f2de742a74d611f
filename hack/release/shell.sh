#!/bin/bash
# shell.sh IMAGE ARCH ROOT: makes ROOT the root of an image in which scripts run, without flex and
# the names of busybox's applets: programs of Debian 13 with their libraries, and the CA
# certificates that curl trusts. It prints their packages, as debian.sh does. Debian 12 has no jq
# 1.7.
#   flex-shell        what scripts of configs have: bash, busybox, curl, flock, jq, ssh
#   flex-shell-disk   beside these btrfs and losetup
#   flex-shell-ceph   bash, busybox, jq and rbd
set -euo pipefail
export LC_ALL=C # join wants the order of sort
cd "$(dirname "$(readlink -f "$0")")"
[ $# = 3 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 64; }
image=$1 arch=$2 root=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

packages=(bash-static busybox-static ca-certificates curl jq openssh-client util-linux)
programs=(bash-static busybox curl flock jq ssh)
case $image in
flex-shell) ;;
flex-shell-disk)
  packages+=(btrfs-progs mount)
  programs+=(btrfs losetup)
  ;;
flex-shell-ceph) # its libraries leave no room for those of curl
  packages=(bash-static busybox-static ca-certificates ceph-common jq)
  programs=(bash-static busybox jq rbd)
  ;;
*)
  echo "error: $image: no such image" >&2
  exit 64
  ;;
esac
./debian.sh --of trixie "$arch" "$tmp/debian" "${packages[@]}" | sort >"$tmp/files"
../with-libraries.sh --root "$tmp/debian" "$root" "${programs[@]}" >"$tmp/copied"
mv "$root/bin/bash-static" "$root/bin/bash"

# What update-ca-certificates makes when the package is installed, where Debian's curl looks.
mkdir -p "$root/etc/ssl/certs"
(cd "$tmp/debian" && find usr/share/ca-certificates -name '*.crt' | sort) >"$tmp/certificates"
(cd "$tmp/debian" && xargs cat <"$tmp/certificates") >"$root/etc/ssl/certs/ca-certificates.crt"
cat "$tmp/certificates" >>"$tmp/copied"

ln -s ../bin "$root/usr/bin" # of #!/usr/bin/env
printf '%s\n' root:x:0:0::/tmp:/bin/bash flex:x:65532:65532::/tmp:/bin/bash \
  >"$root/etc/passwd" # ssh asks who runs it
join <(sort -u "$tmp/copied") "$tmp/files" | cut -d' ' -f2- | sort -u
