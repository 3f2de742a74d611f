#!/bin/bash
# shell.sh ARCH ROOT: makes ROOT the root of the image flex-shell, without flex and the names of
# busybox's applets: programs of Debian 13 with their libraries, and the CA certificates that curl
# trusts. It prints their packages, as debian.sh does. Debian 12 has no jq 1.7.
set -euo pipefail
export LC_ALL=C # join wants the order of sort
cd "$(dirname "$(readlink -f "$0")")"
[ $# = 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 64; }
arch=$1 root=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

./debian.sh --of trixie "$arch" "$tmp/debian" \
  bash-static busybox-static ca-certificates curl jq openssh-client | sort >"$tmp/files"
../with-libraries.sh --root "$tmp/debian" "$root" bash-static busybox curl jq ssh >"$tmp/copied"
mv "$root/bin/bash-static" "$root/bin/bash"

# What update-ca-certificates makes when the package is installed, where Debian's curl looks.
mkdir -p "$root/etc/ssl/certs"
(cd "$tmp/debian" && find usr/share/ca-certificates -name '*.crt' | sort) >"$tmp/certificates"
(cd "$tmp/debian" && xargs cat <"$tmp/certificates") >"$root/etc/ssl/certs/ca-certificates.crt"
cat "$tmp/certificates" >>"$tmp/copied"

ln -s ../bin "$root/usr/bin" # of #!/usr/bin/env
printf '%s\n' root:x:0:0::/tmp:/bin/bash flex:x:65532:65532::/tmp:/bin/bash \
  >"$root/etc/passwd" # ssh asks who runs it
join <(sort -u "$tmp/copied") "$tmp/files" | cut -d' ' -f2- | sort -u
