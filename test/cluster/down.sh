#!/bin/bash
# down.sh: ends the cluster and removes every trace of it. It may be run at any time, twice, and after an interrupted up.sh.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"
# shellcheck source=control-plane.sh
. "$CLUSTER/control-plane.sh"
# shellcheck source=cgroup.sh
. "$CLUSTER/cgroup.sh"

remove_folders() {
  local dir
  [ -e "$KUBE_DIR/folders" ] || return 0
  while read -r dir; do rmdir "$dir" 2>/dev/null || true; done <"$KUBE_DIR/folders"
}

main() {
  local node
  lab_lock
  [ -e "$KUBE_DIR" ] || { lab_net_release kube; say "no cluster is up"; return; }
  for node in $(nodes_known); do "$CLUSTER/node.sh" down "$node"; done
  stop_control_plane
  remove_cgroups ""
  remove_folders
  rm -rf --one-file-system "$KUBE_DIR"
  lab_net_release kube
  say "the cluster is down"
}

main
