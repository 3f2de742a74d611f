#!/bin/bash
# e2e.sh: the end-to-end tests, against a real Kubernetes and a real Cinder that it brings up and takes
# down again, and the proof that nothing of both stays behind. It takes minutes. (make e2e)
#   KUBE=VERSION   another Kubernetes than that of test/cluster/go.mod. Tests that need a newer one are left out, and listed
#   E2E_RUN=REGEX  only the tests with such names
#   E2E_TAGS=e2e,long  with the tests that need more of Cinder than iSCSI; E2E_SUITES=short|long|none: hack/cinder-suites.sh
#                      (short, or none with E2E_RUN)
#   MODE, BACKENDS     of Cinder (test/cinder/up.sh); CINDER_LOGIN: as whom (hack/cinder-secret.sh)
#   FLEX_DEPLOY    another kustomization than test/e2e/deploy
#   E2E_GUESTS=1   with two emulated machines (test/vm): node9 of the cluster, and a box. VM_SELINUX=1:
#                  node9 enforces SELinux
#   KEEP=1         leaves both up; what was up before is left up always
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/cluster/env.sh
. test/cluster/env.sh

TMP=$(mktemp -d)
OURS=() # what this run brought up
TAGS=${E2E_TAGS:-e2e}
! kube_has 36 || TAGS+=,kube136

kubectl() { test/cluster/kubectl.sh "$@"; }

# up PART SIGN: SIGN exists while it is up.
up() {
  [ -e "$2" ] || OURS+=("$1")
  "test/$1/up.sh"
}

# list_tests BINARY: the names of the tests that it would run.
list_tests() { (cd test/e2e && "$1" -test.list "${E2E_RUN:-.}") | sort; }

# left_out: what only a newer Kubernetes can run, as the two binaries themselves list their tests.
left_out() {
  kube_has 36 && return
  go test -c -tags "$TAGS,kube136" -o "$TMP/all.test" ./test/e2e
  comm -13 <(list_tests "$TMP/e2e.test") <(list_tests "$TMP/all.test")
}

# allowed: how long the tests may take, on a machine that is slower than most. With Ceph and what else is long they take longer.
allowed() { [[ ,$TAGS, == *,@(long|storms|everyday),* ]] && echo 60m || echo 40m; }

run_tests() {
  began=$SECONDS
  say "compiling the tests"
  go test -c -tags "$TAGS" -o "$TMP/e2e.test" ./test/e2e
  left_out >"$TMP/left-out"
  say "running the tests on Kubernetes $KUBE"
  (cd test/e2e && KUBECONFIG=$LAB_KUBECONFIG in_control "$TMP/e2e.test" -test.v -test.timeout "$(allowed)" -test.parallel 4 \
    -test.run "${E2E_RUN:-.}") 2>&1 | tee "$TMP/log"
  ! grep -E -- '--- SKIP|no tests to run' "$TMP/log" || die "a test was skipped, or there was none"
}

# mount_pvs: our PVs at the kubelet's own plugins, without a cluster. The flags are those of build.sh: they are part of the build
# cache's key.
mount_pvs() {
  [ "$KUBE" = "$KUBE_DEFAULT" ] || return 0
  say "mounting PVs by the plugins of the kubelet"
  (cd test/cluster && CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off go test -trimpath -vet=off -count=1 ./mounts)
}

# guests: emulated machines. Their kernel is Debian's, whatever the machine has. The pods of runs log
# in to the box.
guests() {
  local node
  hack/deps.sh qemu-system-x86_64:qemu-system-x86
  test/vm/up.sh box node
  test/cluster/node.sh up 9
  for node in $(nodes_known); do
    test/vm/ssh.sh box ip route replace "$KUBE_PODS.$node.0/24" via "$(node_addr "$node")"
  done
}

leftovers() { test/cluster/leftovers.sh; }

# why: the tests that failed, or were not at their end when the time was; what a suite said; else nothing.
why() { grep -Eh '^--- FAIL|^panic: test timed out|^\s+Test\S+ \([0-9hms.]+\)$|^error: ' "$TMP/log" "$TMP/suites" 2>/dev/null | tr -s '\n\t ' ' '; }

# A comparison that cannot fail proves nothing. So it must first find a namespace, its mount, a cgroup and a process.
canary_is_seen() {
  local name=flex-e2e-canary group=/sys/fs/cgroup/pids/flex-e2e-canary had held pid kind
  [ ! -e /sys/fs/cgroup/cgroup.controllers ] || group=/sys/fs/cgroup/$name/$name # version 2 alone
  [ -d /run/netns ] && had=1
  mountpoint -q /run/netns && held=1
  ip netns add $name
  mkdir -p "$group"
  nsenter --net=/run/netns/$name sleep 60 &
  pid=$!
  for _ in $(seq 100); do
    [ "$(cat "/proc/$pid/comm")" != sleep ] || break
    sleep 0.05
  done
  diff "$TMP/before" <(leftovers) >"$TMP/canary" || true
  kill "$pid"
  wait "$pid" 2>/dev/null || true
  rmdir -p "$group" 2>/dev/null || true
  ip netns del $name
  [ -n "${held:-}" ] || umount /run/netns
  [ -n "${had:-}" ] || rmdir /run/netns
  for kind in netns mount cgroup; do
    grep -q "^> $kind: .*$name" "$TMP/canary" || die "the comparison does not detect a leftover $kind"
  done
  grep -q "^> process: sleep 60" "$TMP/canary" || die "the comparison does not detect a leftover process"
}

# Whatever was up before is left up, with what was deployed there: then there is nothing to compare.
down() {
  local part
  [ -z "${E2E_GUESTS:-}" ] || test/cluster/node.sh down 9
  for part in "${OURS[@]}"; do "test/$part/down.sh"; done
  [ ${#OURS[@]} = 2 ] || return 0
  canary_is_seen
  leftovers >"$TMP/after"
  diff "$TMP/before" "$TMP/after" >&2 || die "the lines above were not there before (>), or are missing now (<)"
  say "namespaces, mounts, cgroups, processes and settings are as they were before"
}

finish() {
  local status=$? down
  trap - EXIT
  if [ -n "${KEEP:-}" ]; then
    say "kept up: kubectl is test/cluster/kubectl.sh; test/cluster/down.sh and test/cinder/down.sh end it"
  elif [ ${#OURS[@]} -gt 0 ]; then
    set +e # what follows || or if would run without -e
    (set -e; down)
    down=$?
    [ $down = 0 ] || { [ $status != 0 ] || doing="when the lab was taken down"; status=1; }
  fi
  # What the tests said stands far above, with what they dumped in between.
  [ $status = 0 ] || grep -Eh '^ +[a-z_]+_test\.go:[0-9]+: ' "$TMP/log" 2>/dev/null | grep -v -- '---- ' | cut -c1-240 | tail -n 80 || true
  [ ! -s "$TMP/left-out" ] || say "e2e: left out on $KUBE: $(tr '\n' ' ' <"$TMP/left-out")"
  if [ $status = 0 ]; then
    say "e2e: $(grep -c '^--- PASS' "$TMP/log") tests passed on Kubernetes $KUBE in $((SECONDS / 60)) min $((SECONDS % 60)) s"
  else
    say "e2e: FAILED after $((SECONDS / 60)) min $((SECONDS % 60)) s $doing: $(why)"
  fi
  rm -rf "$TMP"
  exit $status
}

hack/deps.sh
lab_lock
leftovers >"$TMP/before"
doing="before the tests"
trap finish EXIT
trap 'exit 130' INT TERM
doing="when PVs were mounted by the plugins of the kubelet"
mount_pvs
doing="before the tests"
# Without this gate the API server drops the namespace of a claim's dataSourceRef.
FLEX_APISERVER_FLAGS="--feature-gates=CrossNamespaceVolumeDataSource=true ${FLEX_APISERVER_FLAGS:-}" up cluster "$LAB_KUBECONFIG"
up cinder "$LAB_STATE/cinder/settings"
[ -z "${E2E_GUESTS:-}" ] || guests
FLEX_DEPLOY=${FLEX_DEPLOY:-test/e2e/deploy} hack/deploy.sh
doing="in the tests"
run_tests
add_result "$(login_of "${CINDER_LOGIN:-openrc}")" "$(cinder_setting BACKENDS)" "end to end, Kubernetes $KUBE" \
  "$(grep -c '^--- PASS' "$TMP/log")" "$((SECONDS - began))"
doing="in the suites"
hack/cinder-suites.sh "${E2E_SUITES:-$([ -n "${E2E_RUN:-}" ] && echo none || echo short)}" 2>&1 | tee "$TMP/suites"
