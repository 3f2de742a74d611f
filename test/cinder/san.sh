#!/bin/bash
# san.sh up|down: a Linux box with tgt, for the recipes over ssh: sshd and a second tgtd in the chroot, with the address, the control socket, the
# targets and the disk of a machine of its own. The file key in $CINDER_STATE/box logs in as root, and known_hosts has the key of the host.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=test/cinder/services.sh
. "$CINDER_SRC/services.sh"
BOX_ADDR=10.250.0.3 # beside LAB_ADDR and LAB_ADDR2
BOX=$CINDER_STATE/box

# What runs in the chroot: /run, where Cinder's tgtd has its socket, is another one here.
# shellcheck disable=SC2016 # the inner shell's variables
BOOT='
  for dir in /run /etc/tgt; do mount -t tmpfs -o mode=755 tmpfs $dir; done
  mount --bind /lab/state/box/srv /srv
  mkdir /run/tgtd /run/sshd /etc/tgt/conf.d
  echo "include /etc/tgt/conf.d/*.conf" >/etc/tgt/targets.conf
  tgtd -f --iscsi "portal=$1:3260" &
  exec /usr/sbin/sshd -D -e -f /dev/null -o "ListenAddress=$1" -o UsePAM=no -o PidFile=none -o HostKey=/lab/state/box/host \
    -o AuthorizedKeysFile=/lab/state/box/authorized_keys'

answers() { in_control bash -c ": </dev/tcp/$BOX_ADDR/22 </dev/tcp/$BOX_ADDR/3260"; }

up() {
  umask 077
  mkdir -p "$BOX/srv/flex-volumes"
  ssh-keygen -q -t ed25519 -N '' -C flex-provisioner -f "$BOX/key"
  ssh-keygen -q -t ed25519 -N '' -C box -f "$BOX/host"
  { printf 'restrict ' && cat "$BOX/key.pub"; } >"$BOX/authorized_keys"
  { printf '%s ' "$BOX_ADDR" && cat "$BOX/host.pub"; } >"$BOX/known_hosts"
  ip -n "$LAB_NETNS" addr replace "$BOX_ADDR/24" dev kbr0
  start_service box sh -euc "$BOOT" box "$BOX_ADDR"
  wait_for box answers
}

down() {
  stop_service box
  ip -n "$LAB_NETNS" addr del "$BOX_ADDR/24" dev kbr0 2>/dev/null || true
  rm -rf --one-file-system "$BOX"
}

lab_lock
[ -s "$CINDER_STATE/settings" ] || die "Cinder is not up (test/cinder/up.sh)"
case ${1:-} in
up) down && up ;;
down) down ;;
*) die "usage: $0 up|down" ;;
esac
