#!/bin/bash
# san.sh up|down: a Linux box with tgt, for the recipes over ssh: sshd and a second tgtd in the chroot, with the address, the control socket, the
# targets and the disk of a machine of its own: btrfs, which has reflinks. The file key in $CINDER_STATE/box logs in as root, and known_hosts has the
# key of the host. What no kernel of the lab has, LVM, LIO and ZFS, and an appliance at port 80, test/recipes/remote plays.
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
  for dir in /run /etc/tgt /sys/kernel; do mount -t tmpfs -o mode=755 tmpfs $dir; done
  mount -o loop /lab/state/box/disk /srv
  mkdir -p /run/tgtd /run/sshd /etc/tgt/conf.d /sys/kernel/config/target/iscsi /srv/flex-volumes
  echo "include /etc/tgt/conf.d/*.conf" >/etc/tgt/targets.conf
  tgtd -f --iscsi "portal=$1:3260" &
  RECIPE_WORLD=/lab/state/box/played /lab/state/box/played/bin/appliance "$1:80" &
  exec /usr/sbin/sshd -D -e -f /dev/null -o "ListenAddress=$1" -o UsePAM=no -o PidFile=none -o HostKey=/lab/state/box/host \
    -o AuthorizedKeysFile=/lab/state/box/authorized_keys -o "SetEnv=RECIPE_WORLD=/lab/state/box/played PATH=/lab/state/box/played/bin:$PATH"'

answers() { in_control bash -c ": </dev/tcp/$BOX_ADDR/22 </dev/tcp/$BOX_ADDR/3260 </dev/tcp/$BOX_ADDR/80"; }

# play: the programs that are played. Each is the binary of those tests, by its name.
play() {
  local world=$BOX/played name
  mkdir -p "$world/bin" "$world/box"
  (cd "$CINDER_SRC/../recipes/remote" && CGO_ENABLED=0 go test -c -o "$world/programs" .)
  for name in lvs lvcreate lvextend lvchange lvremove targetcli zfs exportfs appliance; do ln -s ../programs "$world/bin/$name"; done
  ln -s /sys/kernel/config/target "$world/box/lio"
}

up() {
  umask 077
  mkdir -p "$BOX"
  truncate -s 4G "$BOX/disk"
  mkfs.btrfs -q "$BOX/disk"
  play
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
