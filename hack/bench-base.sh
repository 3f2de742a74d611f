#!/bin/bash
# bench-base.sh COMMIT FILE: the dispatcher of another commit, built into FILE, to be measured beside
# that of the checkout. It is built again only for another commit.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
out=$(readlink -m "$2")
cd "$(dirname "$(readlink -f "$0")")/.."
commit=$(git rev-parse --verify "$1^{commit}")
[ ! -x "$out" ] || [ "$(cat "$out.commit" 2>/dev/null)" != "$commit" ] || exit 0
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git archive "$commit" | tar -x -C "$source"
cd "$source"
CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$out" ./cmd/flex-dispatcher
echo "$commit" >"$out.commit"
