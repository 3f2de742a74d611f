#!/bin/bash
# exec.sh CMD...: run a command inside the Cinder lab: its programs (iscsi-ls, qemu-io, qemu-img, tgtadm, rbd, ceph,
# python3), its network, tgtd's control socket, Ceph's configuration with the administrator's key. The command replaces
# this one, so PID, exit code and stdin are the caller's. The lab's state is at /lab/state, a scratch directory at /tmp.
set -euo pipefail
# shellcheck source=test/cinder/common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ $# -gt 0 ] || die "usage: $0 COMMAND..."
[ -d "$CINDER_STATE/run" ] || die "Cinder is not up (test/cinder/up.sh)"
exec "${IN_ROOTFS[@]}" "$@"
