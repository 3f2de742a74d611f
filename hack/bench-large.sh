#!/bin/bash
# bench-large.sh memory|scale [ROW...]: what a dispatcher needs in a large cluster, by test/memory
# (make bench-memory, make bench-scale). The rows are ours, base and csi, and all without names.
#   BENCH_BASE=COMMIT   the row base: the dispatcher of that commit, with which ours is compared
#   BENCH_PEERS=no      without the row csi, which takes minutes to build the first time
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/cluster/env.sh
. test/cluster/env.sh

case ${1:-} in
  memory) tests='^Test(Memory|TheCollector)' ;;
  scale) tests='^TestScale$' ;;
  *) sed -n '2,5s/^# //p' "$0" >&2; exit 64 ;;
esac
column=$1
shift
bin=$LAB_CACHE/bench
test/cluster/build.sh
if [ "$column" = memory ] && [ "${BENCH_PEERS:-}" != no ]; then
  test/bench/peers/build.sh "$bin"
  export BENCH_PEERS_BIN=$bin
fi
if [ -n "${BENCH_BASE:-}" ]; then
  hack/bench-base.sh "$BENCH_BASE" "$bin/flex-dispatcher-base"
  export BENCH_BASE_BIN=$bin/flex-dispatcher-base
fi
BENCH_LARGE=$column BENCH_ROWS="$*" go test -count=1 -timeout 60m -v -run "$tests" ./test/memory
