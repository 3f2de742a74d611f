#!/bin/bash
# e2e-long.sh: everything that is too long for make e2e (make e2e-long). Each stage brings up what it needs from nothing,
# takes it down, and must leave nothing; what each took is printed at the end.
#   PART=NAME  only this stage, of those in STAGES; kube is the older Kubernetes
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh

export CINDER=21 # whatever release a lab that was not taken down has left
EVERYTHING=lvm,lvmmp,far,fc,nvme,nfs,ceph
# The tests that depend on the login to Cinder.
OF_LOGINS='Cinder|Clone|Reserve|Portal|Twenty|Leak|Ceph|GrownDisk'
# The tests that every release of Cinder must pass.
OF_RELEASES='PortalHasMoved|CinderClaim|DataOfItsSource|ReserveWorkflow|BothPortals|GrownDisk|OnTheOther|PodsGroup|TwoPortals|WrongPassword|GrownVolume|LoggedOut|FibreChannelVolume|FlexVolumeIs'
# Those that try what stolen tokens would.
OF_ATTACKS='NodesDirectoriesGetsNoMore|WithoutItsGateIsRefused|ServesClaimsThat|BecomesOneOfTheProject|ReachesOnlySecretsOfItsClaim|WriteNoPVOfAnother|BecomesTheDispatcher|AttacksSucceed|LinksOfAPod'
# Those of docs/recipes, and what kubectl flex new makes of them.
OF_RECIPES='^TestRecipe|^TestNew|NFSExamples|ManyClaimsShareFewJobs|WithoutAnyNetwork|IsAnnouncedBefore'
# Those of kubectl flex conform: of images that break a promise or are new, and of each recipe.
OF_CONFORM='^TestConformOfNew|^TestConformFinds'
OF_RECIPES_CONFORM='^TestConformOfRecipes'
# Those that count requests and make thousands of claims.
OF_SCALE='RequestsPerClaim|ThousandsOfWaiting'
# The one that has a Prometheus scrape the dispatcher.
OF_MONITORING='^TestPrometheusSees'
# Those that came of reports about other provisioners before they had a stage of their own, as the scripts that found them: test/everyday.md.
OF_REPORTS='AStartError|BesideASidecar|WhateverItsServiceAccountSays|NodeHasNotTheStorage|FillsItsNode|StickyDirectoryOfAnotherUser|AClaimThatIsLost|ClassesThatItLists'
STAGES='dates docs noauth keystone credential cinder17 cinder26 cinder28 cinder29 zones filters kube sim mutants fuzz storms attacks everyday recipes boxes kernels selinux external scale conform conform-recipes monitoring chart site release'
DONE=()

# dates: whether the Kubernetes that docs/clusters.md lists are still the supported ones.
dates() { go test -tags dates -count=1 -run '^TestTheTableOfKubernetesIsOfToday$' ./test; }

# docs: the commands of the pages that are followed from top to bottom, on what a reader has: of docs/cinder.md, on what these have installed those of
# docs/migrate.md, and those of the recipes. Those of docs/install.md are in the stage release.
docs() {
  local page
  local -x BACKENDS=lvm,fc,nvme,ceph
  ready_for_pages
  run_page docs/cinder.md
  hack/claim-of-another.sh
  run_page docs/migrate.md
  take_down
  BACKENDS=lvm ready_for_pages
  test/cluster/node.sh btrfs 1
  for page in btrfs nfs; do run_page "docs/recipes/$page.md"; done
  test/cluster/node.sh exec 1 umount -l /var/lib/flex-volumes
  for page in loop directory file-server isolated; do run_page "docs/recipes/$page.md"; done
  hack/claim-of-local-path.sh
  run_page docs/migrate-files.md
  take_down
}

# ready_for_pages: a cluster that holds the images and nothing else of ours, and what a reader has
# beside it.
ready_for_pages() {
  local archives built
  hack/deps.sh openstack:python3-openstackclient
  test/cluster/up.sh
  MODE=noauth test/cinder/up.sh
  built=$(hack/images.sh) # a process substitution would hide its failure
  mapfile -t archives <<<"$built"
  test/cluster/load-image.sh "${archives[@]}"
}

# run_page PAGE [HEADING]: its commands, which must leave nothing in Cinder.
run_page() {
  local left start=$SECONDS
  hack/run-docs.sh "$@"
  add_result noauth "$BACKENDS" "the commands of $1${2:+ before \"$2\"}" - $((SECONDS - start))
  left=$(test/cinder/leftovers.sh)
  [ -z "$left" ] || die "left in Cinder: $left"
}

take_down() {
  test/cluster/down.sh
  test/cinder/down.sh
}

# noauth: the tests of every backend, and all suites.
noauth() { MODE=noauth BACKENDS=$EVERYTHING E2E_TAGS=e2e,long E2E_RUN="$OF_LOGINS|$OF_RELEASES" E2E_SUITES=long hack/e2e.sh; }

# keystone: as a member with a password. The suites go through both logins.
keystone() { MODE=keystone BACKENDS=$EVERYTHING E2E_TAGS=e2e,long E2E_RUN=$OF_LOGINS E2E_SUITES=long hack/e2e.sh; }

# credential: with an application credential.
credential() {
  MODE=keystone BACKENDS=$EVERYTHING CINDER_LOGIN=openrc.application-credential E2E_TAGS=e2e,long E2E_RUN=$OF_LOGINS \
    hack/e2e.sh
}

# cinderN: Cinder N instead of 21. The quick start, what depends on the release, and all suites, without keystone and with it. Ceph's
# packages are those of 21 only.
cinder17() { of_cinder 17; }
cinder26() { of_cinder 26; }
cinder28() { of_cinder 28; }
cinder29() { of_cinder 29; }

of_cinder() {
  local mode
  local -x BACKENDS=lvm
  CINDER=$1
  ready_for_pages
  run_page docs/cinder.md "### Ceph (rbd)"
  take_down
  for mode in noauth keystone; do
    MODE=$mode BACKENDS=lvm,lvmmp,far,fc,nvme E2E_TAGS=e2e,long E2E_RUN=$OF_RELEASES E2E_SUITES=long hack/e2e.sh
  done
  CINDER=21
}

# zones: a Cinder that makes a volume in its default zone where it does not have the requested one. The stages before have one that
# refuses it.
zones() {
  make build
  MODE=noauth BACKENDS=lvm,far ZONE_FALLBACK=True test/cinder/up.sh
  hack/cinder-suites.sh zones
  test/cinder/down.sh
}

# filters: as a member, of a Cinder that refuses to members each filter that its file does not list, since it has no such file.
filters() {
  MODE=keystone BACKENDS=lvm,lvmmp,far,fc,nvme FILTERS=none E2E_TAGS=e2e,long \
    E2E_RUN='CinderClaim|ReserveWorkflow' E2E_SUITES=long hack/e2e.sh
}

# kube: all of e2e on the Kubernetes whose modules test/cluster has beside those of the newest.
# The suites of the Cinder image know no Kubernetes.
kube() {
  local mod
  for mod in test/cluster/kube-*.mod; do
    mod=$(basename -s .mod "$mod")
    KUBE=${mod#kube-} E2E_SUITES=none hack/e2e.sh
  done
}

# sim: ten thousand seeds of the simulation.
sim() { make sim; }

# mutants: wrong changes of the code, one at a time. A test must find each.
mutants() { make mutants; }

# fuzz: every parser, for a minute each.
fuzz() { hack/fuzz.sh; }

# storms: everything is killed, etcd's disk is full and the clock of a node is off while claims come and go; STORM_SEED=n repeats what a seed has
# shown. After a clock was set back, kube-controller-manager takes no lease of that node for newer, and goes by its status.
storms() {
  FLEX_ETCD_SIZE=1g FLEX_KUBELET_CONFIG='nodeStatusReportFrequency: 10s' MODE=noauth BACKENDS=lvm \
    E2E_TAGS=e2e,storms E2E_RUN=InAStorm hack/e2e.sh
}

# attacks: every attack, with the policies and without them.
attacks() { MODE=noauth BACKENDS=lvm E2E_TAGS=e2e,long E2E_RUN=$OF_ATTACKS hack/e2e.sh; }

# everyday: what is reported of other provisioners: the tests of that tag, and those of OF_REPORTS.
everyday() {
  local own
  own=$(grep -ho '^func Test\w*' test/e2e/everyday_*_test.go | sed 's/^func //' | paste -sd '|')
  MODE=noauth BACKENDS=lvm E2E_TAGS=e2e,everyday E2E_RUN="^($own)$|$OF_REPORTS" hack/e2e.sh
}

# recipes: the scripts of docs/recipes, first as processes, then in the cluster, and the table of what each can do.
recipes() {
  local -x MODE=noauth BACKENDS=lvm,ceph RECIPES_CEPH=$LAB_STATE/cinder/ceph
  hack/deps.sh rbd:ceph-common zsh:zsh tcsh:tcsh tgtd:tgt tgt-admin:tgt
  test/cinder/up.sh
  go test -tags recipes -count=1 -timeout 40m -v -exec "ip netns exec $LAB_NETNS" ./test/recipes/... | tee "$TMP/recipes"
  ! grep -E -- '--- SKIP|no tests to run' "$TMP/recipes" || die "a test was skipped, or there was none"
  KEEP='' FLEX_DEPLOY=test/e2e/recipes FLEX_IMAGES=recipes E2E_TAGS=e2e,long E2E_RUN=$OF_RECIPES hack/e2e.sh 2>&1 | tee -a "$TMP/recipes"
  ticks "$TMP/recipes" recipes
}

# ticks LOG PART: the rows of docs/recipes/README.md whose ticks stand on tests of this part. Each of
# these tests must have passed.
ticks() {
  awk -F ' *[|] *' -v part="$2" '
    function part_of(test) {
      return test ~ /^TestAReal/ ? "boxes" : test ~ /^Test(Kernel|XFS)/ ? "kernels" : "recipes"
    }
    NR == FNR {
      if (/--- PASS: /) {
        sub(/.*--- PASS: /, "")
        sub(/ .*/, "")
        passed[$0] = 1
      }
      next
    }
    $4 !~ /^`Test/ { next }
    {
      here = 0
      n = split($4, tests, /`, `|`/)
      for (i = 1; i <= n; i++) {
        if (tests[i] == "" || part_of(tests[i]) != part) continue
        here = 1
        if (!(tests[i] in passed)) {
          print "not passed: " $2 ", " $3 ": " tests[i]
          bad = 1
        }
      }
      if (here) printf "%-14s %-24s %s\n", $2, $3, $4
    }
    END { exit bad }' "$1" docs/recipes/README.md ||
    die "docs/recipes/README.md has ticks whose tests have not passed"
}

# boxes: the scripts of the recipes that work on a box, on an emulated one with Debian's own kernel,
# and a node that logs in to it.
boxes() {
  hack/deps.sh qemu-system-x86_64:qemu-system-x86
  test/cluster/leftovers.sh >"$TMP/before"
  test/vm/up.sh box node
  RECIPES_VM=$LAB_STATE/vm go test -tags boxes -count=1 -timeout 60m -v -run '^TestAReal' \
    -exec "ip netns exec $LAB_NETNS" ./test/recipes/remote | tee "$TMP/boxes"
  ! grep -E -- '--- SKIP|no tests to run' "$TMP/boxes" || die "a test was skipped, or there was none"
  without_guests
  ticks "$TMP/boxes" boxes
  cells "$TMP/boxes" TestARealBoxWith
}

# without_guests: they end, and leave nothing.
without_guests() {
  test/vm/down.sh
  test/cluster/leftovers.sh >"$TMP/after" # it would list a diff that waits for it
  diff "$TMP/before" "$TMP/after" >&2 ||
    die "the lines above were not there before (>), or are missing now (<)"
}

# kernels: what needs a kernel that the machine may not have, on that of Debian: recipes as processes
# of a guest, and PVs by the kubelet of a guest that is a node of the cluster.
kernels() {
  local root=/root/flex
  hack/deps.sh qemu-system-x86_64:qemu-system-x86
  test/cluster/leftovers.sh >"$TMP/before"
  CGO_ENABLED=0 go test -c -tags kernels -o "$TMP/recipes.test" ./test/recipes
  CGO_ENABLED=0 go build -o "$TMP/flex" ./cmd/flex
  test/vm/up.sh node
  tar -c hack/with-libraries.sh scripts test/recipes/testdata -C "$TMP" flex recipes.test |
    test/vm/ssh.sh node "mkdir $root && tar -x -C $root"
  test/vm/ssh.sh node "cd $root/test/recipes && RECIPES_FLEX=$root/flex \
    exec $root/recipes.test -test.v -test.timeout 40m" | tee "$TMP/kernels"
  ! grep -E -- '--- SKIP|no tests to run' "$TMP/kernels" ||
    die "a test was skipped, or there was none"
  without_guests
  KEEP='' E2E_GUESTS=1 MODE=noauth BACKENDS=lvm,lvmmp,nvme,ceph FLEX_DEPLOY=test/e2e/recipes \
    FLEX_IMAGES=recipes E2E_TAGS=e2e,long,kernels E2E_RUN='^TestKernel' hack/e2e.sh 2>&1 |
    tee -a "$TMP/kernels"
  ticks "$TMP/kernels" kernels
  cells "$TMP/kernels" TestKernel
}

# selinux: directories of nodes, NFS and iSCSI on a node that enforces SELinux, by Debian's policy.
selinux() {
  hack/deps.sh qemu-system-x86_64:qemu-system-x86
  KEEP='' VM_SELINUX=1 E2E_GUESTS=1 MODE=noauth BACKENDS=lvm FLEX_DEPLOY=test/e2e/recipes \
    FLEX_IMAGES=recipes E2E_TAGS=e2e,long,kernels E2E_RUN='^TestSELinux' hack/e2e.sh 2>&1 |
    tee "$TMP/selinux"
  cells "$TMP/selinux" TestSELinux
}

# cells LOG PREFIX: a table of the steps that have passed, a row for each test with steps whose name
# has the prefix. A step may be several cells.
cells() {
  local columns="provisioned,mounted by the kernel,written,read by a second client,grown,cloned"
  awk -v columns="$columns,there after a reboot,deleted,repeated after a kill" -v prefix="$2" '
    BEGIN { n = split(columns, column, ",") }
    index($3, prefix) == 1 && index($3, "/") {
      name = substr($3, length(prefix) + 1)
      sub("/.*", "", name)
      if (!(name in seen)) rows[++last] = name
      seen[name] = 1
    }
    /--- PASS: / && index($3, prefix) == 1 && split($3, part, "/") == 2 {
      gsub(/_/, " ", part[2])
      cells = split(part[2], cell, ", ")
      for (i = 1; i <= cells; i++) passed[name, cell[i]] = 1
    }
    END {
      printf "test"
      for (i = 1; i <= n; i++) printf "\t%s", column[i]
      for (r = 1; r <= last; r++) {
        printf "\n%s", rows[r]
        for (i = 1; i <= n; i++) printf "\t%s", passed[rows[r], column[i]] ? "✓" : "-"
      }
      print ""
    }' "$1" | column -t -s $'\t'
}

# external: Kubernetes' own suite for storage, on volumes that the kubelet mounts: by iSCSI, and on the node. What it skips, test/external lists.
external() {
  local node left
  local -x MODE=noauth BACKENDS=lvm
  test/cluster/leftovers.sh >"$TMP/before"
  test/cluster/up.sh
  test/cinder/up.sh
  FLEX_DEPLOY=test/e2e/recipes FLEX_IMAGES=recipes hack/deploy.sh
  for node in 1 2; do test/cluster/node.sh btrfs "$node"; done
  test/external/build.sh
  test/external/run.sh
  left=$(test/cinder/leftovers.sh)
  [ -z "$left" ] || die "left in Cinder: $left"
  for node in 1 2; do test/cluster/node.sh exec "$node" umount -l /var/lib/flex-volumes; done
  take_down
  test/cluster/leftovers.sh >"$TMP/after" # it would list a diff that waits for it
  diff "$TMP/before" "$TMP/after" >&2 || die "the lines above were not there before (>), or are missing now (<)"
}

# chart: the Helm chart, rendered and compared with deploy/, then the dispatcher is installed, upgraded under load, set back and uninstalled by Helm, by a
# kustomization, and by one file as that of a release.
chart() {
  local node left
  local -x BACKENDS=lvm HELM=$TMP/helm
  make chart
  (cd test/chart && go build -o "$HELM" helm.sh/helm/v4/cmd/helm && go test -c -tags e2e -o "$TMP/chart.test" .)
  ready_for_pages
  for node in 1 2; do test/cluster/node.sh exec "$node" ctr -n k8s.io images tag localhost/flex-dispatcher:dev localhost/flex-dispatcher:next >/dev/null; done
  (cd test/chart && HELM_CACHE_HOME=$TMP HELM_CONFIG_HOME=$TMP HELM_DATA_HOME=$TMP KUBECONFIG=$LAB_KUBECONFIG in_control "$TMP/chart.test" \
    -test.v -test.timeout 30m -test.run InTheLab) 2>&1 | tee "$TMP/chart"
  ! grep -E -- '--- SKIP|no tests to run' "$TMP/chart" || die "a test was skipped, or there was none"
  left=$(test/cinder/leftovers.sh)
  [ -z "$left" ] || die "left in Cinder: $left"
  take_down
}

# equal_archives: flex-shell is the same image when make images builds it again.
equal_archives() {
  local archive=$LAB_CACHE/images/flex-shell.tar
  hack/images.sh flex-shell >/dev/null
  mv "$archive" "$TMP/flex-shell.tar"
  hack/images.sh flex-shell >/dev/null
  cmp "$archive" "$TMP/flex-shell.tar" || die "two builds of flex-shell differ"
}

# release: two builds of one commit are equal, and what is in them fits together. One of them, and nothing else, installs the dispatcher in a cluster
# without a registry, by the commands of docs/install.md.
release() {
  hack/release/test.sh "$TMP/release"
  equal_archives
  BACKENDS=lvm test/cluster/up.sh
  DIST=$TMP/release/a/dist hack/run-docs.sh docs/install.md
  test/cluster/down.sh
}

# scale: the requests of a claim, and thousands of claims.
scale() { MODE=noauth BACKENDS=lvm E2E_TAGS=e2e,long E2E_RUN=$OF_SCALE hack/e2e.sh; }

# conform: kubectl flex try and conform of new provisioners, of recipes, and of an image that breaks one promise at a time.
conform() {
  go test -tags long -count=1 -timeout 30m -run 'Try' ./try ./test/recipes/remote
  MODE=noauth BACKENDS=lvm FLEX_DEPLOY=test/e2e/recipes FLEX_IMAGES=recipes E2E_TAGS=e2e,long E2E_RUN=$OF_CONFORM hack/e2e.sh
}

# conform-recipes: kubectl flex conform of Cinder and of each recipe.
conform-recipes() {
  hack/deps.sh rbd:ceph-common
  MODE=noauth BACKENDS=lvm,fc,nvme,ceph FLEX_DEPLOY=test/e2e/recipes FLEX_IMAGES=recipes E2E_TAGS=e2e,long E2E_RUN=$OF_RECIPES_CONFORM hack/e2e.sh
}

# monitoring: the alerts and the dashboard of deploy/monitoring, in a real Prometheus, while things go wrong.
monitoring() {
  hack/deps.sh prometheus:prometheus
  MODE=noauth BACKENDS=lvm E2E_TAGS=e2e,long E2E_RUN=$OF_MONITORING hack/e2e.sh
}

# site: the pages as a site, without a dead link, and pictures of three of them for a person to view.
site() {
  hack/deps.sh node:nodejs npm:npm
  make site
  docs/site/pictures.sh
}

results() {
  { printf 'Cinder\tlogin\tbackends\tsuite\ttests\tseconds\n'; cat "$FLEX_RESULTS"; } | column -t -s $'\t'
}

# end_guests STATUS: their consoles are kept when a test has failed.
end_guests() {
  [ -e "$LAB_STATE/vm" ] || return 0
  if [ "$1" != 0 ]; then
    rm -rf "$LAB_CACHE/failed/vm"
    mkdir -p "$LAB_CACHE/failed"
    cp -r "$LAB_STATE/vm/log" "$LAB_CACHE/failed/vm"
    say "the consoles of the guests: $LAB_CACHE/failed/vm"
  fi
  test/vm/down.sh
}

finish() {
  local status=$?
  end_guests $status
  [ ! -e "$LAB_STATE" ] || take_down
  [ ! -s "$FLEX_RESULTS" ] || results
  rm -f "$FLEX_RESULTS"
  rm -rf "$TMP"
  [ ${#DONE[@]} = 0 ] || printf '%s\n' "${DONE[@]}"
  [ $status = 0 ] || echo "e2e-long: FAILED in ${stage:-the beginning}"
}

[[ " $STAGES " == *" ${PART:-docs} "* ]] || die "PART=$PART: the parts are named in $0"
hack/deps.sh
lab_lock
if [ -e "$LAB_KUBECONFIG" ] || [ -e "$LAB_STATE/cinder/settings" ]; then
  die "the lab is up: take it down first (test/cluster/down.sh, test/cinder/down.sh)"
fi
FLEX_RESULTS=$(mktemp)
TMP=$(mktemp -d)
export FLEX_RESULTS
trap finish EXIT
trap 'exit 130' INT TERM
for stage in ${PART:-$STAGES}; do
  start=$SECONDS
  say "=== $stage"
  "$stage"
  DONE+=("e2e-long: $stage passed in $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s")
done
