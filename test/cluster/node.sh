#!/bin/bash
# node.sh up|down NODE        start or end a node (NODE is its number)
# node.sh kill NODE           end it as a power cut does: its disks stay, and `up` boots it again
# node.sh exec NODE CMD...    run a command inside it, as root
# node.sh btrfs NODE          mount a btrfs of 2 GiB, on a file, where the recipes have the volumes of a node
# Node 9 is the guest `node` of test/vm, an emulated machine with a kernel of its own.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"
# shellcheck source=cgroup.sh
. "$CLUSTER/cgroup.sh"
# shellcheck source=node-config.sh
. "$CLUSTER/node-config.sh"
# shellcheck source=node-net.sh
. "$CLUSTER/node-net.sh"
# shellcheck source=../vm/env.sh
. "$CLUSTER/../vm/env.sh"

# Not `ip netns exec`: that mounts a new /sys, and would hide /sys/fs/cgroup.
# slave: what the host unmounts is unmounted here as well; what the node mounts stays its own.
node_up() {
  local node=$1
  write_node_config "$node"
  make_node_net "$node"
  make_cgroups "$node"
  lab_start "$KUBE_DIR" "node$node" nsenter --net="/run/netns/$(node_netns "$node")" \
    unshare --mount --propagation slave --pid --fork --kill-child=SIGKILL --mount-proc --uts --ipc \
    "$CLUSTER/node-init.sh" "$node"
}

# guest_up: by 9p the guest has the folders of the machine at the same places. SELinux refuses
# each new file where files have no label.
guest_up() {
  local folder options=trans=virtio,msize=524288 context=()
  "$VM/up.sh" node
  ! in_vm node systemctl is-active -q flex-node || return 0
  mkdir -p "$(node_dir 9)"
  if in_vm node test -e /sys/fs/selinux/enforce; then
    options+=,context=system_u:object_r:bin_t:s0
    context=(-p SELinuxContext=-system_u:system_r:container_engine_t:s0)
  fi
  for folder in test:"$(readlink -f "$VM/..")" cache:"$LAB_CACHE" state:"$LAB_STATE"; do
    in_vm node "mountpoint -q ${folder#*:} || { mkdir -p ${folder#*:} &&
      mount -t 9p -o $options ${folder%%:*} ${folder#*:}; }"
  done
  make_pod_routes 9
  in_vm node "$(printf '%q ' systemd-run -q --collect --unit=flex-node -p Delegate=yes \
    "${context[@]}" \
    --setenv="FLEX_LAB_CACHE=$LAB_CACHE" --setenv="KUBE=$KUBE" \
    --setenv="FLEX_PROXY_MODE=${FLEX_PROXY_MODE:-}" \
    --setenv="FLEX_KUBELET_CONFIG=${FLEX_KUBELET_CONFIG:-}" "$CLUSTER/node-guest.sh")"
  wait_for 400 guest_ready || die "node9 is not ready after 400 s: see $KUBE_DIR/log"
  say "node9 is ready"
}

guest_ready() {
  "$CLUSTER/kubectl.sh" wait --for=condition=Ready --timeout=10s node/node9 >/dev/null 2>&1
}

# guest_exec CMD...: its own login shell reads the command.
guest_exec() { in_vm node "PATH=$KUBE_DIR/bin:\$PATH $(printf '%q ' "$@")"; }

guest_down() {
  "$VM/down.sh"
  rm -rf --one-file-system "$(node_dir 9)"
}

node_down() {
  node_kill "$1"
  rm -rf --one-file-system "$(node_dir "$1")"
}

# node_kill NODE: no session of the initiator outlives the node.
node_kill() {
  local node=$1
  lab_stop "$KUBE_DIR" "node$node" KILL
  release_loops "$node"
  rm -rf --one-file-system "$(node_dir "$node")/iscsi"
  remove_node_net "$node"
  remove_cgroups "node$node"
}

# release_loops NODE: loop devices are the machine's, and outlive the node that had the sessions.
release_loops() {
  local file
  for file in "$(node_dir "$1")"/iscsi/node/*/*/loop.*; do
    [ ! -e "$file" ] || losetup --detach "$(cat "$file")" 2>/dev/null || true
  done
}

# node_init NODE: the host's pid of the node's process 1, the only child of the one that was started.
node_init() {
  [ -e "$KUBE_DIR/pids/node$1" ] || die "node$1 is not up"
  pgrep -P "$(cat "$KUBE_DIR/pids/node$1")" || die "node$1 has ended: see $KUBE_DIR/log/node$1.log"
}

node_exec() {
  local init
  init=$(node_init "$1")
  shift
  exec nsenter -t "$init" --net --mount --pid --uts --ipc "$@"
}

# node_btrfs NODE: its loop device ends with the mount, and that with the node.
node_btrfs() {
  truncate -s 2G "$(node_dir "$1")/btrfs"
  mkfs.btrfs -q "$(node_dir "$1")/btrfs"
  node_exec "$1" mount -o loop "$(node_dir "$1")/btrfs" /var/lib/flex-volumes
}

case ${1:-}:${2:-} in
  up:9) lab_lock && guest_up ;;
  down:9) lab_lock && guest_down ;;
  exec:9) shift 2 && guest_exec "$@" ;;
  up:[1-9]) lab_lock && node_up "$2" ;;
  down:[1-9]) lab_lock && node_down "$2" ;;
  kill:[1-9]) lab_lock && node_kill "$2" ;;
  exec:[1-9]) shift && node_exec "$@" ;;
  btrfs:[1-9]) node_btrfs "$2" ;;
  *) sed -n '2,6s/^# //p' "$0" >&2; exit 64 ;;
esac
