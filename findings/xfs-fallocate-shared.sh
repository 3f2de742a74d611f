#!/bin/bash
# xfs-fallocate-shared.sh: fallocate reserves nothing for the blocks that a file shares with its
#   clone.
# Package: Debian's xfsprogs 6.1.0, and the XFS of this machine's kernel.
# Seen: fallocate on the whole of a clone succeeds, and no block is taken. So it succeeds also
#   where there is no room for the clone's own blocks, and a write to a part of the file that
#   was "allocated" may fail for lack of room. So a volume
#   that is a reflink of another, as a file, has no space of its own by fallocate alone.
# Needs: root, a loop device, and apt-get with the packages of Debian 12.
set -euo pipefail

if [ "${1:-}" != inside ]; then
  exec unshare --mount "$(readlink -f "$0")" inside
fi
dir=$(mktemp -d)
trap 'umount "$dir/mnt" 2>/dev/null || true; rm -rf "$dir"' EXIT
chmod 0755 "$dir"
cd "$dir"
apt-get download 'xfsprogs=6.1.0-*' libinih1 liburcu8 >apt.log 2>&1
for package in *.deb; do
  dpkg -x "$package" root
done
export LD_LIBRARY_PATH=$dir/root/usr/lib/x86_64-linux-gnu:$dir/root/lib/x86_64-linux-gnu
export PATH=$dir/root/sbin:$dir/root/usr/sbin:$PATH

# used prints how many MiB of the file system are used.
used() {
  sync -f mnt
  df --output=used -B 1M mnt | tail -n 1
}

# grown COMMAND...: prints how many MiB a command takes, in steps of 100.
grown() {
  local before after
  before=$(used)
  "$@"
  after=$(used)
  echo "$(((after - before + 50) / 100 * 100)) MiB"
}

mkfs.xfs -V
uname -r
truncate -s 1G disk
mkfs.xfs -q disk
mkdir mnt
mount -o loop disk mnt
dd if=/dev/zero of=mnt/first bs=1M count=200 status=none
cp --reflink=always mnt/first mnt/clone
{
  echo "fallocate: $(grown fallocate --length 200MiB mnt/clone)"
  writes=(dd if=/dev/zero of=mnt/clone bs=1M count=200 conv=notrunc status=none)
  echo "the writes after it: $(grown "${writes[@]}")"
} >seen
cat seen
diff seen - <<'END'
fallocate: 0 MiB
the writes after it: 200 MiB
END
echo "as described"
