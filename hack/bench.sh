#!/bin/bash
# bench.sh: claims bound and deleted a second, of this project and of its peers, in one run. (make bench)
# Each cell of the table has a cluster of its own: a control plane without kubelets, and test/bench plays the nodes. Those of the column "one"
# have a real node, and print the time of a claim by step. Those of "memory" and "scale" have no
# nodes and 100,000 claims (bench-large.sh). What is printed is kept in BENCH_OUT as bench.txt, with
# bench.json, bench.svg and the logs of the provisioners.
#   BENCH=quick          a few cells, in minutes
#   BENCH_CELLS=REGEX    only cells with such names: 'stock/', 'raised/(csi|ours-64)$'
#   BENCH_PEERS=no       without the peers, which take minutes to build the first time
#   BENCH_BASE=COMMIT    measures the dispatcher of that commit, too, with which targets compare this one
#   PROFILE=1            keeps CPU profiles of the API server beside the logs of the provisioners
#   BENCH_OUT=DIR        bin/bench
#   BENCH_ADD=1          keeps the cells that are in BENCH_OUT, measured by an earlier run, and measures only the others
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/cluster/env.sh
. test/cluster/env.sh

OUT=$(readlink -m "${BENCH_OUT:-bin/bench}")
BIN=$LAB_CACHE/bench
FAILED=()

kubectl() { test/cluster/kubectl.sh "$@"; }

compile() {
  mkdir -p "$BIN"
  say "compiling the benchmark"
  go build -trimpath -buildvcs=false -o "$BIN/" ./test/bench
  if [ "${BENCH_PEERS:-}" != no ]; then
    say "compiling the peers"
    test/bench/peers/build.sh "$BIN"
  fi
  ln -sf "$PWD/bin/flex-dispatcher" "$BIN/"
  if [ -n "${BENCH_BASE:-}" ]; then
    say "compiling the dispatcher of $BENCH_BASE"
    hack/bench-base.sh "$BENCH_BASE" "$BIN/flex-dispatcher-base"
  fi
}

# can_measure ROW PEER
can_measure() {
  [ "$2" = false ] || [ "${BENCH_PEERS:-}" != no ] || return 1
  [[ $1 != base* ]] || [ -n "${BENCH_BASE:-}" ] || return 1
  [ "$1" != local-path ] || grep -q kube-client-qps "$BIN/local-path-provisioner" || return 1 # its limit cannot be raised
}

# cells: COLUMN ROW CLAIMS FILE, one a line, of the cells to measure.
cells() {
  local column row claims peer file quick=false
  [ "${BENCH:-}" != quick ] || quick=true
  "$BIN/bench" plan -quick=$quick | while read -r column row claims peer file; do
    can_measure "$row" "$peer" || continue
    [[ $column/$row =~ ${BENCH_CELLS:-.} ]] || continue
    [ -z "${BENCH_ADD:-}" ] || [ ! -e "$OUT/cells/$file" ] || continue
    echo "$column $row $claims $file"
  done
}

# up_alone ROW: the policies that are shipped are in force for every row. The dispatcher is started by the benchmark, and only for its rows.
up_alone() {
  test/cluster/up.sh 0
  kubectl kustomize deploy/base | kubectl apply -f - >/dev/null
  kubectl -n flex-system delete deployment flex-dispatcher >/dev/null
  [ "$1" != recipe ] || kubectl apply -f configmaps/nfs.yaml >/dev/null
}

# up_with_node ROW: with the dispatcher and the images as they are shipped, and an image for local-path-provisioner's pods.
up_with_node() {
  local context
  unset FLEX_CONTROLLERS_FLAGS FLEX_SCHEDULER_FLAGS
  [ "$1" != one-cinder ] || BACKENDS=lvm test/cinder/up.sh
  test/cluster/up.sh 1
  hack/deploy.sh
  context=$(mktemp -d)
  install -m 0755 /bin/busybox "$context/busybox"
  printf 'FROM scratch\nCOPY busybox /bin/busybox\nRUN ["/bin/busybox", "--install", "-s", "/bin"]\n' >"$context/Dockerfile"
  test/cluster/load-image.sh "$(test/cluster/build-image.sh bench-helper:v1 "$context")"
  rm -rf "$context"
}

cell() { # COLUMN ROW CLAIMS FILE
  local flags
  mapfile -t flags < <("$BIN/bench" flags "$1")
  export FLEX_CONTROLLERS_FLAGS=${flags[0]} FLEX_SCHEDULER_FLAGS=${flags[1]}
  [ -z "${PROFILE:-}" ] || export FLEX_APISERVER_FLAGS=--profiling=true
  say "$1/$2: $3 claims"
  if [ "$1" = one ]; then up_with_node "$2"; else up_alone "$2"; fi
  in_control "$BIN/bench" cell -column "$1" -row "$2" -claims "$3" -kubeconfig "$LAB_KUBECONFIG" -state "$KUBE_DIR" \
    -bin "$BIN" -logs "$OUT/logs" -profile="$([ -z "${PROFILE:-}" ] && echo false || echo true)" -out "$OUT/cells/$4" || FAILED+=("$4")
  test/cluster/down.sh
  [ "$2" != one-cinder ] || test/cinder/down.sh
}

# large COLUMN ROW...: a cluster with many claims, which has no nodes.
large() {
  say "$*"
  BENCH_CELLS_DIR=$OUT/cells hack/bench-large.sh "$@" || FAILED+=("$1")
}

machine() {
  printf '%s cores, %s, Linux %s, Kubernetes %s, commit %s\n' "$(nproc)" \
    "$(sed -n 's/^MemTotal: *\([0-9]*\).*/\1/p' /proc/meminfo | awk '{ printf "%d GiB", $1 / 1048576 }')" "$(uname -r)" "$KUBE" \
    "$(git describe --always --dirty 2>/dev/null || echo unknown)"
}

main() {
  local todo line column row claims file memory=() scale=()
  if [ -e "$KUBE_DIR" ] || [ -e "$LAB_STATE/cinder" ]; then
    die "a cluster or a Cinder is running, and the benchmark needs its own. Stop them: test/cluster/down.sh, test/cinder/down.sh"
  fi
  compile
  [ -n "${BENCH_ADD:-}" ] || rm -rf "$OUT/cells" "$OUT/logs"
  mkdir -p "$OUT/cells" "$OUT/logs"
  mapfile -t todo < <(cells)
  lab_lock
  trap 'test/cluster/down.sh; test/cinder/down.sh' EXIT
  trap 'exit 130' INT TERM
  for line in "${todo[@]}"; do
    read -r column row claims file <<<"$line"
    case $column in
      memory) memory+=("$row") ;;
      scale) scale+=("$row") ;;
      *) cell "$column" "$row" "$claims" "$file" ;;
    esac
  done
  [ ${#memory[@]} = 0 ] || large memory "${memory[@]}"
  [ ${#scale[@]} = 0 ] || large scale "${scale[@]}"
  "$BIN/bench" report -dir "$OUT" -machine "$(machine)"
  say "bench: ${#todo[@]} cells in $((SECONDS / 60)) min $((SECONDS % 60)) s; $OUT"
  [ ${#FAILED[@]} = 0 ] || die "these cells failed: ${FAILED[*]}"
}

main
