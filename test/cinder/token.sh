#!/bin/bash
# token.sh: how this Cinder is asked as its administrator, in one line: the API's URL (with keystone, and a project in it) and a token.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ -s "$CINDER_STATE/settings" ] || die "Cinder is not up (test/cinder/up.sh)"
load_settings
in_rootfs python3 -c 'import lab_api; cinder = lab_api.Cinder(); print(cinder.url, cinder.token)'
