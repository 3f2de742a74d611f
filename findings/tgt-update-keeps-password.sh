#!/bin/bash
# tgt-update-keeps-password.sh: "tgt-admin --update ALL" does not change the password of a user
#   whom tgtd knows.
# Package: Debian's tgt 1.0.85, with libiscsi-bin as the client.
# Seen: the configuration with the new password is read, and the command succeeds. The old
#   password still logs in, and the new one does not. tgt-admin creates an account only if there
#   is none of that name, and --update deletes targets, not accounts. So after a password was
#   rotated the one that was to go is the one that works, until tgtd is started anew.
# Needs: root, and apt-get with the packages of Debian 12. tgtd has a network and a folder /run
#   of its own.
set -euo pipefail
daemon=

# inside runs tgtd in namespaces of its own, with the packages in the present directory.
inside() {
  local i
  ip link set lo up
  mount -t tmpfs none /run
  mkdir /run/tgtd
  tgtd -f >tgtd.log 2>&1 &
  daemon=$!
  trap 'kill -9 "$daemon"' EXIT
  for ((i = 0; i < 50; i++)); do
    ! tgtadm --op show --mode sys >/dev/null 2>&1 || break
    sleep 0.2
  done
  truncate -s 16M disk
  configure first-password
  configure second-password
  login first-password
  login second-password
}

# configure PASSWORD: writes the configuration, and lets tgt-admin apply it.
configure() {
  cat >targets.conf <<END
<target iqn.2026-11.example:disk>
  backing-store $PWD/disk
  incominguser user $1
</target>
END
  tgt-admin --conf "$PWD/targets.conf" --update ALL
}

# login PASSWORD: prints whether an initiator can log in by it.
login() {
  if iscsi-inq "iscsi://user%$1@127.0.0.1:3260/iqn.2026-11.example:disk/1" >>inq.log 2>&1; then
    echo "$1 logs in"
  else
    echo "$1 is refused"
  fi
}

if [ "${1:-}" = inside ]; then
  inside
  exit
fi
self=$(readlink -f "$0")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 0755 "$dir"
cd "$dir"
apt-get download 'tgt=1:1.0.85-*' 'libiscsi-bin=1.19.0-*' 'libiscsi7=1.19.0-*' \
  'libconfig-general-perl=2.65-*' >apt.log 2>&1
for package in *.deb; do
  dpkg -x "$package" root
done
export LD_LIBRARY_PATH=$dir/root/usr/lib/x86_64-linux-gnu
export PERL5LIB=$dir/root/usr/share/perl5
export PATH=$dir/root/usr/sbin:$dir/root/usr/bin:$PATH
echo "tgtd $(tgtd --version)"
unshare --net --mount "$self" inside >seen
cat seen
diff seen - <<'END'
first-password logs in
second-password is refused
END
echo "as described"
