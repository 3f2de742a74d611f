#!/bin/bash
# finish.sh ROOT: what the guests' image is beside its packages.
set -euo pipefail
root=$1

# The package of ZFS would take its module with it.
for modules in "$root"/lib/modules/*/updates/dkms; do
  [ -e "$modules" ] || break
  mv "$modules" "$root/root/zfs"
  chroot "$root" apt-get -qq purge --autoremove zfs-dkms dkms linux-headers-amd64
  mkdir -p "${modules%/*}"
  mv "$root/root/zfs" "$modules"
  chroot "$root" depmod "$(basename "${modules%/updates/dkms}")"
done

# Each guest gets its address and its name from the kernel's command line, and its key from qemu.
rm -f "$root/etc/hostname" "$root"/etc/ssh/ssh_host_{rsa,ecdsa}_key*
chroot "$root" systemctl enable ssh.service \
  systemd-networkd.service systemd-network-generator.service

# The recipes start what they need of these, and nothing else uses an emulated processor.
for unit in tgt.service open-iscsi.service multipathd.service nfs-server.service apt-daily.timer \
  apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer \
  rpcbind.service rpcbind.socket; do
  [ ! -e "$root/lib/systemd/system/$unit" ] || chroot "$root" systemctl disable "$unit"
done
chroot "$root" systemctl mask systemd-networkd-wait-online.service

# A box whose language has a decimal comma.
echo 'de_DE.UTF-8 UTF-8' >"$root/etc/locale.gen"
chroot "$root" locale-gen
printf '/dev/vda / ext4 defaults,noatime 0 0\n' >"$root/etc/fstab"
rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*.bin

# confine: each file gets its label. The lab's containerd and kubelet are no programs that Debian's
# policy knows, so what they do is allowed. Containers are confined.
confine() {
  chroot "$root" semanage permissive -a container_engine_t
  chroot "$root" setfiles -F -e /proc -e /sys -e /dev \
    /etc/selinux/default/contexts/files/file_contexts /
}
[ ! -e "$root/etc/selinux/default" ] || confine
