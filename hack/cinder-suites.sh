#!/bin/bash
# cinder-suites.sh short|long|zones|none: the Go suites of the Cinder image, against the real Cinder that is up (test/cinder/up.sh), in its
# MODE and with all its BACKENDS. It prints what each took. A skipped test is a failure, and so are a suite without
# a test on the real Cinder, and anything that a suite leaves there.
#   short   what make e2e has time for: the whole of provisioner-image/cinder, the order of requests, one half
#           of the kill points
#   long    everything, as every account that the lab has; with keystone a member's password and an application credential
#   zones   what is about availability zones, which is also part of the others
#   none    nothing
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh

case ${1:-} in
none) exit 0 ;;
short | long | zones) ;;
*) die "usage: $0 short|long|zones|none" ;;
esac
[ -s "$LAB_STATE/cinder/settings" ] || die "Cinder is not up (test/cinder/up.sh)"
[ -x bin/cinder-provisioner ] || die "bin/cinder-provisioner is missing: make build"
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT

# types: the volume types that are up, by the source that their volumes are mapped to.
types() {
  local pair pairs=iscsi=lvmmp,fc=fc,csi.nvmf.com=nvme,rbd.csi.ceph.com=ceph
  for pair in ${pairs//,/ }; do
    [[ ,$(cinder_setting BACKENDS), != *",${pair#*=},"* ]] || printf '%s,' "$pair"
  done
}

# zones_now: the value of FLEX_TEST_CINDER_ZONES, which is empty without a backend in a second zone.
zones_now() {
  case ,$(cinder_setting BACKENDS),/$(cinder_setting ZONE_FALLBACK) in
  *,far,*/True) echo fallback ;;
  *,far,*) echo strict ;;
  esac
}

# rows SUITE LOGIN SECONDS: the tests on the real Cinder in the log, without those that only have parts, counted by backend. Those that name
# none ran on the default type.
rows() {
  grep -o -- '--- PASS: [^ ]*/real[^ ]*' "$TMP/log" | sort -r -k3 | awk -v types="$(types)" -v default="$(cinder_setting BACKENDS | cut -d, -f1)" '
    BEGIN { n = split(types, pairs, "[=,]"); for (i = 2; i <= n; i += 2) isType[pairs[i]] = 1 }
    index(last, $3 "/") == 1 { next } # the last one was a part of this test
    { last = $3; at = default; n = split($3, words, "[/,]"); for (i = 1; i <= n; i++) if (words[i] in isType) at = words[i]; tests[at]++ }
    END { for (at in tests) print at, tests[at] }' | sort | while read -r backend tests; do
    add_result "$(login_of "$2")" "$backend" "$1" "$tests" "$3"
  done
}

# suite NAME LOGIN PACKAGE FLAG...: one test binary, as the account in the openrc file LOGIN.
suite() {
  local what=$1 login=$2 package=$3 start=$SECONDS status=0 left
  shift 3
  (cd "$package" && in_control env FLEX_TEST_CINDER="$LAB_STATE/cinder/$login" FLEX_TEST_CINDER_TYPES="$(types)" FLEX_TEST_CINDER_ZONES="$(zones_now)" \
    FLEX_TEST_CINDER_RELEASE="$(cinder_setting CINDER)" \
    FLEX_TEST_BINARY="$ROOT/bin/cinder-provisioner" "$TMP/$(basename "$package").test" -test.v -test.timeout 30m "$@") \
    >"$TMP/log" 2>&1 || status=$?
  [ $status = 0 ] || { cat "$TMP/log" >&2; die "$what as $login: failed after $((SECONDS - start)) s"; }
  grep -E 'kill points covered' "$TMP/log" | sed 's/.*go:[0-9]*: /  /' || true
  ! grep -E -- '--- SKIP|no tests to run' "$TMP/log" || die "$what as $login: a test was skipped, or there was none"
  grep -q -- '--- PASS: [^ ]*/real' "$TMP/log" || die "$what as $login: no test met the real Cinder"
  left=$(new_in_cinder)
  [ -z "$left" ] || die "$what as $login left behind:"$'\n'"$left"
  say "$what as $login: $(grep -c -- '--- PASS: [^ ]*/real' "$TMP/log") tests on the real Cinder passed in $((SECONDS - start)) s"
  rows "$what" "$login" $((SECONDS - start))
}

# new_in_cinder: what was not there in the beginning. Tests that kill Cinder in the middle of its work leave
# a quota reservation that Cinder never releases.
new_in_cinder() { test/cinder/leftovers.sh | sort | comm -13 "$TMP/before" -; }

# A search that cannot find anything proves nothing, so it must find a volume that was just made.
canary_is_seen() {
  local volume
  volume=$(test/cinder/volume.sh make canary)
  new_in_cinder >"$TMP/canary"
  test/cinder/volume.sh remove "$volume"
  grep -q "^volume: $volume" "$TMP/canary" || die "leftovers.sh does not detect a volume"
  grep -q "^books: .* volumes: [1-9][0-9]* in use" "$TMP/canary" || die "leftovers.sh does not detect the usage of the quota"
}

short() {
  suite "the Cinder adapter" openrc provisioner-image/cinder -test.skip '^TestThirtyClaimsInParallel$'
  suite "the order of requests" openrc cmd/cinder-provisioner -test.run "$ORDER"
  suite "kill points" openrc cmd/cinder-provisioner -test.run '^TestRunKilledAtAnyRequestIsCompletedByTheNext$/^real$/^(attachments|auto)$/^provision$'
}

long() {
  local login
  for login in openrc openrc.application-credential; do
    [ -e "$LAB_STATE/cinder/$login" ] || continue
    suite "the Cinder adapter" "$login" provisioner-image/cinder
    suite "the order of requests" "$login" cmd/cinder-provisioner -test.run "$ORDER"
    suite "thirty claims at once" "$login" cmd/cinder-provisioner -test.run '^TestThirtyProcessesInParallel$/^real$'
    suite "twenty claims in one run" "$login" cmd/cinder-provisioner -test.run '^TestTwentyClaimsInOneBatch$/^real$'
    suite "every backend" "$login" cmd/cinder-provisioner -test.run '^TestEveryBackendIsProvisionedAndDeleted$/^real$'
    suite "kill points" "$login" cmd/cinder-provisioner -test.run '^TestRunKilledAtAnyRequestIsCompletedByTheNext$/^real$'
  done
}

zones() { suite "availability zones" openrc provisioner-image/cinder -test.run Zone; }

ROOT=$PWD
ORDER='^TestRequestsThatChangeSomethingComeInTheirOrder$/^real$'
say "compiling the suites of the Cinder image"
go test -c -o "$TMP/" ./provisioner-image/cinder ./cmd/cinder-provisioner
test/cinder/leftovers.sh | sort >"$TMP/before"
canary_is_seen
"$1"
