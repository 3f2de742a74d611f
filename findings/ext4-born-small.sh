#!/bin/bash
# ext4-born-small.sh: an ext4 that was made on less than 512 MiB cannot be grown to 1 TiB, and
#   one of 512 MiB can.
# Package: Debian's e2fsprogs 1.47.0.
# Seen: below 512 MiB mke2fs takes blocks of 1 KiB ("small" in mke2fs.conf), and nothing changes
#   them later. A group then has 8 MiB, so 1 TiB has 131072 of them, and their descriptors need
#   as many blocks as a group has. resize2fs does not grow it. So a volume for a few files,
#   which is grown again and again, ends long before ext4 does.
# Needs: apt-get with the packages of Debian 12. No root: the file systems are sparse files,
#   which are not mounted.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 0755 "$dir"
cd "$dir"
apt-get download 'e2fsprogs=1.47.0*' 'libext2fs2=1.47.0*' 'libss2=1.47.0*' \
  'libcom-err2=1.47.0*' >apt.log 2>&1
for package in *.deb; do
  dpkg -x "$package" root
done
export LD_LIBRARY_PATH=$dir/root/lib/x86_64-linux-gnu
export MKE2FS_CONFIG=$dir/root/etc/mke2fs.conf
export PATH=$dir/root/sbin:$PATH

# grow SIZE: prints whether an ext4 of this size grows to 1 TiB, and what resize2fs says.
grow() {
  truncate -s "$1" disk
  mke2fs -q -t ext4 disk
  dumpe2fs -h disk 2>/dev/null | grep '^Block size'
  truncate -s 1T disk
  if resize2fs disk >said 2>&1; then
    echo "$1: grown"
  else
    echo "$1: not grown"
  fi
  sed '/^$/d' said
  rm disk
}

mke2fs -V 2>&1 | head -n 1
grow 511M | tee small
grow 512M | tee large
grep -q 'Block size: *1024' small
grep -q 'too many block group descriptors' small
grep -q 'Block size: *4096' large
grep -q '512M: grown' large
echo "as described"
