#!/bin/bash
# e2e-long.sh: everything that is too long for make e2e (make e2e-long). Each stage brings up what it needs from nothing,
# takes it down, and must leave nothing; what each took is printed at the end.
#   PART=NAME  only this stage: docs, noauth, keystone, credential, kube (the oldest Kubernetes) or attacks
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh

EVERYTHING=lvm,lvmmp,fc,nvme,nfs,ceph
# The tests that depend on the login to Cinder.
OF_LOGINS='Cinder|Clone|Reserve|Portal|Thirty|Leak|Ceph|GrownDisk'
# Those that try what stolen tokens would.
OF_ATTACKS='NodesDirectoriesGetsNoMore|WithoutItsGateIsRefused|ReachesOnlySecretsOfItsClaim|WriteNoPVOfAnother|BecomesTheDispatcher|AttacksSucceed'
DONE=()

# docs: the commands of docs/cinder.md on a cluster that holds the images and nothing else of ours.
docs() {
  local archives built left
  test/cluster/up.sh
  MODE=noauth BACKENDS=lvm,fc,nvme,ceph test/cinder/up.sh
  built=$(scripts/images.sh) # a process substitution would hide its failure
  mapfile -t archives <<<"$built"
  test/cluster/load-image.sh "${archives[@]}"
  scripts/run-docs.sh docs/cinder.md
  left=$(test/cinder/leftovers.sh)
  [ -z "$left" ] || die "left in Cinder: $left"
  take_down
}

take_down() {
  test/cluster/down.sh
  test/cinder/down.sh
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

# kube: all of e2e on the oldest Kubernetes on which the project is tested. The suites of the Cinder image know no Kubernetes.
kube() { KUBE=$(oldest_kube) E2E_SUITES=none scripts/e2e.sh; }

# oldest_kube: the modules of which test/cluster holds, beside those of the newest.
oldest_kube() { basename -s .mod test/cluster/kube-*.mod | sed 's/^kube-//' | sort -V | head -1; }

# attacks: every attack, with the policies and without them. noauth has them, too, so this stage runs only when it is named.
attacks() { MODE=noauth BACKENDS=lvm E2E_TAGS=e2e,long E2E_RUN=$OF_ATTACKS scripts/e2e.sh; }

finish() {
  local status=$?
  [ ! -e "$LAB_STATE" ] || take_down
  [ ${#DONE[@]} = 0 ] || printf '%s\n' "${DONE[@]}"
  [ $status = 0 ] || echo "e2e-long: FAILED in ${stage:-the beginning}"
}

[[ " docs noauth keystone credential kube attacks " == *" ${PART:-docs} "* ]] || die "PART=$PART: the parts are named in $0"
scripts/deps.sh
lab_lock
if [ -e "$LAB_KUBECONFIG" ] || [ -e "$LAB_STATE/cinder/settings" ]; then
  die "the lab is up: take it down first (test/cluster/down.sh, test/cinder/down.sh)"
fi
trap finish EXIT
trap 'exit 130' INT TERM
for stage in ${PART:-docs noauth keystone credential kube}; do
  start=$SECONDS
  say "=== $stage"
  "$stage"
  DONE+=("e2e-long: $stage passed in $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s")
done
