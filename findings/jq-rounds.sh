#!/bin/bash
# jq-rounds.sh: jq 1.6 changes a number above 2^53 that no filter touches.
# Package: Debian's jq 1.6.
# Seen: 9007199254740993 is printed as 9007199254740992, also by the filter ".", and two numbers
#   that differ are equal. jq -r '.id' of a storage's answer is another ID then. A text of the
#   same digits stays as it is.
# Needs: apt-get with the packages of Debian 12. No root.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 0755 "$dir"
cd "$dir"
apt-get download 'jq=1.6-*' 'libjq1=1.6-*' 'libonig5=6.9.8-*' >apt.log 2>&1
for package in *.deb; do
  dpkg -x "$package" root
done
export LD_LIBRARY_PATH=$dir/root/usr/lib/x86_64-linux-gnu
export PATH=$dir/root/usr/bin:$PATH

{
  jq --version
  echo '{"id": 9007199254740993}' | jq -c .
  echo '[9007199254740993, 9007199254740992]' | jq -c '.[0] == .[1]'
  echo '{"id": "9007199254740993"}' | jq -c .
} >seen
cat seen
diff seen - <<'END'
jq-1.6
{"id":9007199254740992}
true
{"id":"9007199254740993"}
END
echo "as described"
