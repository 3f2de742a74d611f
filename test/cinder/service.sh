#!/bin/bash
# service.sh stop|kill|start NAME: one service of a Cinder that is up (cinder, tgtd, keystone), for tests of its absence. kill gives it no
# time to end, and fails if it does not run. Volumes, accounts and exports are kept. Returns when the service has ended, or answers again.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=test/cinder/services.sh
. "$CINDER_SRC/services.sh"

usage() { die "usage: $0 stop|kill|start cinder|tgtd|keystone"; }

case ${2:-} in cinder | tgtd | keystone) ;; *) usage ;; esac
lab_lock
[ -s "$CINDER_STATE/settings" ] || die "Cinder is not up (test/cinder/up.sh)"
load_settings
[ "$2" != keystone ] || [ "$MODE" = keystone ] || die "Cinder is up without keystone"
case $1 in
stop) stop_service "$2" ;;
kill) lab_kill "$CINDER_STATE" "$2" ;;
start) running "$2" || "start_$2" ;;
*) usage ;;
esac
