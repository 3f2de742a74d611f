#!/bin/bash
# up.sh: a real Cinder on the lab's network, from nothing; the first time it builds what it needs (build.sh).
#   MODE=noauth|keystone           default noauth
#   CINDER=17|21|26|28|29          the release (21), each from the Debian release that has it
#   BACKENDS=lvm,lvmmp,...         of lvm lvmmp far fc nvme nfs ceph; default lvm,lvmmp,fc; the first is the default type. far is in a zone of its own
#   ZONE_FALLBACK=True             a volume for a zone that does not exist is made in the zone nova; default False
#   FILTERS=none                   without resource_filters.json, as pip installs Cinder; default file
#   KEEP_STATE=1                   volumes and accounts of the last time are kept (same MODE and BACKENDS)
# A Cinder that is up with these settings is left alone. One with others, or half up, is taken down first.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=test/cinder/services.sh
. "$CINDER_SRC/services.sh"
# shellcheck source=test/cinder/ceph.sh
. "$CINDER_SRC/ceph.sh"
export MODE=${MODE:-noauth} BACKENDS=${BACKENDS:-lvm,lvmmp,fc} ZONE_FALLBACK=${ZONE_FALLBACK:-False}
export FILTERS=${FILTERS:-file}

check_settings() {
  local backend
  case $MODE in noauth | keystone) ;; *) die "MODE=$MODE: noauth or keystone" ;; esac
  for backend in ${BACKENDS//,/ }; do
    case $backend in lvm | lvmmp | far | fc | nvme | nfs | ceph) ;; *) die "BACKENDS=$BACKENDS: no backend $backend" ;; esac
  done
  case $ZONE_FALLBACK in True | False) ;; *) die "ZONE_FALLBACK=$ZONE_FALLBACK: True or False" ;; esac
  case $FILTERS in file | none) ;; *) die "FILTERS=$FILTERS: file or none" ;; esac
  [ -n "$BACKENDS" ] || die "BACKENDS is empty"
}

services() {
  echo tgtd
  [ "$MODE" != keystone ] || echo keystone
  ! has_backend ceph || printf '%s\n' ceph-mon ceph-mgr ceph-osd
  echo cinder
}

healthy() {
  local name
  [ "$(cat "$CINDER_STATE/settings" 2>/dev/null)" = "$(settings_now)" ] || return 1
  for name in $(services); do running "$name" || return 1; done
  timeout 30 "${IN_ROOTFS[@]}" python3 /lab/src/tools/setup_cinder.py 2>/dev/null
}

start_all() {
  local name
  for name in tgtd $([ "$MODE" != keystone ] || echo keystone) $(! has_backend ceph || echo ceph) cinder; do
    say "starting $name"
    "start_$name"
    [ "$name" != keystone ] || in_rootfs python3 /lab/src/tools/setup_keystone.py
  done
}

check_settings
need_tools ip:iproute2 nsenter:util-linux unshare:util-linux curl:curl
lab_lock
if healthy; then
  say "Cinder $CINDER is up already ($MODE, $BACKENDS): $CINDER_API"
  exit 0
fi
KEEP_STATE=${KEEP_STATE:-} "$CINDER_SRC/down.sh"
"$CINDER_SRC/build.sh"
lab_net_hold cinder
make_state
echo "$CINDER" >"$CINDER_STATE/release"
start_all
in_rootfs python3 /lab/src/tools/write_openrc.py
settings_now >"$CINDER_STATE/settings"
say "Cinder $CINDER is up ($MODE, $BACKENDS): $CINDER_API, how to reach it: $CINDER_STATE/openrc"
