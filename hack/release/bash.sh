#!/bin/bash
# bash.sh ARCH: unpacks the packages of Debian whose programs the images of scripts have, and makes $WORK/roots/bash-ARCH, which all of these begin with:
# static bash and busybox, and flex. release.sh sets the environment.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
arch=${1:?usage: $0 ARCH}
root=$WORK/roots/bash-$arch

./debian.sh "$arch" "$WORK/debian-$arch" bash-static busybox-static btrfs-progs ceph-common curl jq mount openssh-client util-linux |
  sort >"$WORK/files-$arch"
./programs.sh "$root" "$arch" bash-static busybox
mv "$root/bin/bash-static" "$root/bin/bash"
install -m 0755 "$WORK/linux-$arch/flex" "$root/bin"
