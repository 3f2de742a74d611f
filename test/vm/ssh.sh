#!/bin/bash
# ssh.sh NAME CMD...: runs a command on a guest, as root.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"

name=$1
shift
in_vm "$name" "$@"
