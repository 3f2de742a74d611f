#!/bin/bash
# down.sh: ends what up.sh started, by PID, and removes the volumes; KEEP_STATE=1 keeps them for the next up.sh.
# Twice is as good as once.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=test/cinder/services.sh
. "$CINDER_SRC/services.sh"

lab_lock
# Clients before servers: Cinder would wait for a Ceph that is already down.
for name in cinder keystone tgtd box ceph-osd ceph-mgr ceph-mon; do
  ! running "$name" || say "stopping $name"
  stop_service "$name"
done
rm -f "$CINDER_STATE/settings"
[ -n "${KEEP_STATE:-}" ] || rm -rf --one-file-system "$CINDER_STATE"
lab_net_release cinder
