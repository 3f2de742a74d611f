#!/bin/bash
# leftovers.sh: what exists in a Cinder that is up, one line each: volumes and snapshots, what its quotas count, tgt's
# targets, Ceph's images. Prints nothing when there is nothing.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ -s "$CINDER_STATE/settings" ] || die "Cinder is not up (test/cinder/up.sh)"
load_settings
in_rootfs python3 /lab/src/tools/print_leftovers.py
in_rootfs tgtadm --lld iscsi --mode target --op show | sed -n 's/^Target [0-9]*: /target: /p'
! has_backend ceph || in_rootfs rbd --pool volumes ls | sed 's/^/image: /'
