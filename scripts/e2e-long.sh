#!/bin/bash
# e2e-long.sh: everything that is too long for make e2e (make e2e-long). Each stage brings up what it needs from nothing,
# takes it down, and must leave nothing; what each took is printed at the end.
#   STAGES="docs keystone"  only these
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh

EVERYTHING=lvm,lvmmp,fc,nvme,nfs,ceph
# The tests that ask anything of Cinder's login. The others know Cinder only by its answers.
OF_LOGINS='Cinder|Copied|ACopy|Reserve|Portal|Thirty|Leak|Ceph|Item07'
DONE=()

# docs: the commands of docs/cinder.md on a cluster that holds the images and nothing else of ours.
docs() {
  local archives status=0
  test/cluster/up.sh
  MODE=noauth BACKENDS=lvm,fc,nvme,ceph test/cinder/up.sh
  mapfile -t archives < <(scripts/images.sh)
  test/cluster/load-image.sh "${archives[@]}"
  scripts/run-docs.sh docs/cinder.md && nothing_left || status=1
  test/cluster/down.sh
  test/cinder/down.sh
  return $status
}

nothing_left() {
  local left
  left=$(test/cinder/leftovers.sh)
  [ -z "$left" ] || { printf 'left in Cinder: %s\n' "$left" >&2; return 1; }
}

# noauth: all of e2e, with the tests of every backend, and all suites.
noauth() { MODE=noauth BACKENDS=$EVERYTHING E2E_TAGS=e2e,long E2E_SUITES=long scripts/e2e.sh; }

# keystone: as a member with a password. The suites go through both logins.
keystone() { MODE=keystone BACKENDS=$EVERYTHING E2E_TAGS=e2e,long E2E_RUN=$OF_LOGINS E2E_SUITES=long scripts/e2e.sh; }

# credential: with an application credential.
credential() {
  MODE=keystone BACKENDS=$EVERYTHING CINDER_LOGIN=openrc.application-credential E2E_TAGS=e2e,long E2E_RUN=$OF_LOGINS \
    scripts/e2e.sh
}

summary() { [ ${#DONE[@]} = 0 ] || printf '%s\n' "${DONE[@]}"; }

scripts/deps.sh
lab_lock
[ ! -e "$LAB_KUBECONFIG" ] && [ ! -e "$LAB_STATE/cinder/settings" ] ||
  die "the lab is up: take it down first (test/cluster/down.sh, test/cinder/down.sh)"
trap summary EXIT
for stage in ${STAGES:-docs noauth keystone credential}; do
  start=$SECONDS
  say "=== $stage"
  # A command of its own: set -e would be off in a function that is asked whether it succeeded.
  "$stage"
  DONE+=("e2e-long: $stage passed in $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s")
done
