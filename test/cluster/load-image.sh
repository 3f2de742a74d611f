#!/bin/bash
# load-image.sh TAR...: imports image archives (docker save, build-image.sh) into every node.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"

# load NODE TAR: the archive goes in by stdin, so that the node needs not see the host's folders.
load() {
  local out
  out=$("$CLUSTER/node.sh" exec "$1" ctr -n k8s.io images import --local - <"$2" 2>&1) ||
    die "node$1, $2: $out"
}

main() {
  [ $# -gt 0 ] || { sed -n '2s/^# //p' "$0" >&2; exit 64; }
  local tar node nodes jobs=() job
  mapfile -t nodes < <(nodes_known)
  [ ${#nodes[@]} -gt 0 ] || die "no node is up: run test/cluster/up.sh first"
  for tar in "$@"; do
    [ -s "$tar" ] || die "$tar: no such file"
    for node in "${nodes[@]}"; do
      load "$node" "$tar" &
      jobs+=($!)
    done
  done
  for job in "${jobs[@]}"; do wait "$job"; done
}

main "$@"
