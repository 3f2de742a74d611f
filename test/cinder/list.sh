#!/bin/bash
# list.sh: the volumes of all projects, as Cinder's own HTTP API tells them: id, status, size in GiB, name, metadata;
# tab-separated, oldest first. Prints nothing when there are none.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ -s "$CINDER_STATE/settings" ] || die "Cinder is not up (test/cinder/up.sh)"
load_settings
in_rootfs python3 /lab/src/tools/list_volumes.py
