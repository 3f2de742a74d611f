#!/bin/bash
# enter.sh CMD...: the second half of in_rootfs, in a mount namespace of its own. The chroot is read-only, so that no
# run can change what the next one starts from; all state is below $CINDER_STATE.
set -euo pipefail
root=$CINDER_ROOTFS state=$CINDER_STATE

mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount --bind "$state" "$root/lab/state"
mount --bind "$CINDER_SRC" "$root/lab/src"
mount -o remount,bind,ro "$root/lab/src"
mount --bind "$state/run" "$root/run"
mount --bind "$state/tmp" "$root/tmp"
mount --bind "$state/cinder" "$root/var/lib/cinder"
mount --bind "$state/keystone" "$root/var/lib/keystone"
mount --bind "$state/hosts" "$root/etc/hosts"

# Leave the machine's mounts behind: a service that lives for hours must not keep, say, a container's file system busy.
cd "$root"
pivot_root . old-root
exec chroot . /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  HOME=/tmp LANG=C.UTF-8 TERM="${TERM:-dumb}" \
  PYTHONPATH=/lab/src/drivers:/lab/src/tools PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore \
  OS_KEYSTONE_CONFIG_FILES=/lab/state/conf/keystone.conf CEPH_CONF=/lab/state/ceph/ceph.conf \
  LAB_ADDR="$LAB_ADDR" LAB_ADDR2="$LAB_ADDR2" MODE="${MODE:-}" BACKENDS="${BACKENDS:-}" CINDER="$CINDER" \
  /bin/sh -c 'umount -l /old-root && exec "$@"' sh "$@"
