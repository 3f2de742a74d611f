#!/bin/bash
# debian.sh [--of CODENAME] ARCH DIR PACKAGE...: unpacks packages of Debian for an architecture, and
# those that they depend on, into DIR, and prints of each file its path, and the package URL, the
# version and the SHA-256 of its package. With --of they are of another Debian than this machine's,
# such as trixie, from the machine's mirrors. The machine's own packages and architectures stay as
# they are, and no root is needed: apt has its state in a directory of its own, and checks the
# signatures of its sources as always.
set -euo pipefail
of=
[ "${1:-}" != --of ] || { of=$2; shift 2; }
[ $# -ge 3 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 64; }
arch=$1 root=$2
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$root" "$state/lists/partial" "$state/archives/partial"
touch "$state/status"

options=(-o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::Cache=$state"
  -o Debug::NoLocking=true -o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
  -o "APT::Sandbox::User=$(id -un)" -o Acquire::Retries=3)

apt() {
  apt-get -q "${options[@]}" "$@" >"$state/log" 2>&1 || { cat "$state/log" >&2; exit 1; }
}

# sources_of CODENAME: the machine's sources of Debian, for another release of it. Sources of others
# have no such release, or another key.
sources_of() {
  local own
  own=$(. /etc/os-release && echo "$VERSION_CODENAME")
  # shellcheck disable=SC2016 # apt expands them
  apt-get "${options[@]}" indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' | sort -u |
    sed -n "s|^Debian \(\S*\) $own\(\S*\) main$|deb [signed-by=$keyring] \1 $1\2 main|p"
}

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
apt update
if [ -n "$of" ]; then
  sources_of "$of" >"$state/sources"
  options+=(-o "Dir::Etc::SourceList=$state/sources" -o Dir::Etc::SourceParts=/dev/null)
  apt update
fi
apt install --yes --no-install-recommends --download-only "${@:3}"
for package in "$state"/archives/*.deb; do
  dpkg-deb --extract "$package" "$root"
  version=$(dpkg-deb --field "$package" Version)
  of="pkg:deb/debian/$(dpkg-deb --field "$package" Package)@$(jq -rn --arg version "$version" '$version | @uri')?arch=$arch"
  dpkg-deb --fsys-tarfile "$package" | tar -t | sed -n "s|^\./\(.*[^/]\)$|\1 $of $version $(sha256sum <"$package" | cut -d' ' -f1)|p"
done
