#!/bin/bash
# down.sh: ends the guests and removes every trace of them but the image. It may be run at any
# time, and twice.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"

main() {
  local name
  lab_lock
  if [ -e "$VM_DIR" ]; then
    for name in $(vm_names); do
      lab_stop "$VM_DIR" "$name" KILL # its disks are not kept: nothing has to be written
    done
    for name in box node; do
      ip -n "$LAB_NETNS" link del "$(vm_tap "$name")" 2>/dev/null || true
    done
    rm -rf --one-file-system "$VM_DIR"
  fi
  lab_net_release vm
  say "no guest is up"
}

main
