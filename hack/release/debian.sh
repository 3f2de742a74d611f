#!/bin/bash
# debian.sh ARCH DIR PACKAGE...: unpacks packages of Debian for an architecture, and those that they depend on, into DIR, and prints of each file its
# path, and the package URL, the version and the SHA-256 of its package. The machine's own packages and architectures stay as they are, and no root is needed: apt has its state in a
# directory of its own, and checks the signatures of the machine's sources as always.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 64; }
arch=$1 root=$2
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$root" "$state/lists/partial" "$state/archives/partial"
touch "$state/status"

apt() {
  apt-get -q -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state" -o Debug::NoLocking=true \
    -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@" >"$state/log" 2>&1 ||
    { cat "$state/log" >&2; exit 1; }
}

apt update
apt install --yes --no-install-recommends --download-only "${@:3}"
for package in "$state"/archives/*.deb; do
  dpkg-deb --extract "$package" "$root"
  version=$(dpkg-deb --field "$package" Version)
  of="pkg:deb/debian/$(dpkg-deb --field "$package" Package)@$(jq -rn --arg version "$version" '$version | @uri')?arch=$arch"
  dpkg-deb --fsys-tarfile "$package" | tar -t | sed -n "s|^\./\(.*[^/]\)$|\1 $of $version $(sha256sum <"$package" | cut -d' ' -f1)|p"
done
