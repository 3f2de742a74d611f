#!/bin/bash
# Runs on the machine when the packages are in: finish.sh ROOTFS. What every start would do again is done here once.
set -euo pipefail
root=$1

# Names are looked up in /etc/hosts only: a nameserver cannot be reached from the lab's network, and waiting for one
# shows as a service that hangs at its start. The eventlet of Cinder 17 does not start without one; at this address
# nothing listens, and a question is refused at once.
sed -i 's/^hosts:.*/hosts: files/' "$root/etc/nsswitch.conf"
rm -f "$root/etc/resolv.conf" "$root/etc/hosts"
echo 'nameserver 127.0.0.1' >"$root/etc/resolv.conf"
touch "$root/etc/hosts"

# Mount points of enter.sh.
mkdir -p "$root"/lab/{state,src,db} "$root/var/lib/"{cinder,keystone} "$root/old-root"

# Migrating an empty database takes longer than starting Cinder: keep one.
migrate() {
  chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 PYTHONWARNINGS=ignore "$@"
}
printf '[database]\nconnection = sqlite:////lab/db/cinder.sqlite\n' >"$root/tmp/cinder.conf"
printf '[database]\nconnection = sqlite:////lab/db/keystone.sqlite\n' >"$root/tmp/keystone.conf"
migrate cinder-manage --config-file /tmp/cinder.conf db sync
migrate keystone-manage --config-file /tmp/keystone.conf db_sync
rm -f "$root/tmp/cinder.conf" "$root/tmp/keystone.conf"
