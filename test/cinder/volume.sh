#!/bin/bash
# volume.sh make NAME | remove ID: a volume of the storage administrator's own, of 1 GiB and the default type. Prints its ID.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ -s "$CINDER_STATE/settings" ] || die "Cinder is not up (test/cinder/up.sh)"
[ $# = 2 ] || die "usage: $0 make NAME | remove ID"
load_settings
case $1 in
make) in_rootfs python3 /lab/src/tools/make_volume.py "$2" ;;
remove) in_rootfs python3 /lab/src/tools/make_volume.py --remove "$2" ;;
*) die "usage: $0 make NAME | remove ID" ;;
esac
