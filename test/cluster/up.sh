#!/bin/bash
# up.sh [NODES]: a Kubernetes of one control plane and NODES (2) real nodes on this machine. KUBE=VERSION: another than go.mod's.
# With 0 nodes it is the control plane alone: no pod runs until nodes are added.
# A healthy cluster with the same settings is left alone; any other is taken down first.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"
# shellcheck source=keys.sh
. "$CLUSTER/keys.sh"
# shellcheck source=control-plane.sh
. "$CLUSTER/control-plane.sh"
# shellcheck source=node-config.sh
. "$CLUSTER/node-config.sh"

NODES=${1:-2}
FOLDERS=(/var/lib/containerd /var/lib/kubelet /var/lib/cni /dev/disk "$KUBE_MOUNTS")

# wanted: the settings with which a cluster is started. A running one with others is not the one wanted.
wanted() {
  echo "kube=$KUBE nodes=$NODES"
  cat "$KUBE_BIN"/.*.key "$CLUSTER"/{audit-policy.yaml,control-plane.sh,node-init.sh}
  declare -p FLEX_APISERVER_FLAGS FLEX_CONTROLLERS_FLAGS FLEX_SCHEDULER_FLAGS FLEX_ETCD_SIZE
  echo "${FLEX_PROXY_MODE:-} ${FLEX_KUBELET_CONFIG:-}"
}

healthy() {
  local n name
  [ "$(cat "$KUBE_DIR/wanted" 2>/dev/null)" = "$(wanted)" ] || return 1
  for name in "${CONTROL_PLANE[@]}"; do running "$name" || return 1; done
  for n in $(seq "$NODES"); do node_answers "$n" || return 1; done
  api_ready && [ "$(nodes_ready)" = "$NODES" ]
}

# node_answers NODE: the API calls a node ready until 50 s after its kubelet's end, so ask the node.
node_answers() {
  running "node$1" || return 1
  [ "$(nsenter --net="/run/netns/$(node_netns "$1")" curl -sm 5 http://127.0.0.1:10248/healthz)" = ok ] &&
    "$CLUSTER/node.sh" exec "$1" ctr version >/dev/null 2>&1
}

kubectl() { "$CLUSTER/kubectl.sh" "$@"; }

# nodes_ready: without the guest, which comes and goes.
nodes_ready() {
  kubectl get nodes -l kubernetes.io/hostname!=node9 -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}' |
    grep -c True || true
}

# Ready to use: pods of a namespace without its service account are refused.
usable() {
  local n
  must_run "${CONTROL_PLANE[@]}"
  for n in $(seq "$NODES"); do must_run "node$n"; done
  [ "$(nodes_ready)" = "$NODES" ] && kubectl get serviceaccount default >/dev/null 2>&1
}

# label_nodes: node1 is the one that reaches the storage and exports directories, and the dispatcher may run on all. A kubelet may not say that of itself (NodeRestriction), an administrator does.
# A node that is killed and boots again finds its Node object with the label.
label_nodes() {
  [ "$NODES" != 0 ] || return 0
  kubectl label --overwrite node node1 node-restriction.kubernetes.io/flex-storage-network=true node-restriction.kubernetes.io/flex-{nfs-server,file-server,isolated}=true >/dev/null
  kubectl label --overwrite node --all node-restriction.kubernetes.io/flex-dispatcher=true >/dev/null
}

# make_folders: nodes mount their own over these; down.sh removes those that we made.
make_folders() {
  local dir
  for dir in "${FOLDERS[@]}"; do
    [ -d "$dir" ] || { mkdir "$dir" && echo "$dir" >>"$KUBE_DIR/folders"; }
  done
}

give_up() {
  local status=$?
  [ $status -ne 0 ] || return 0
  rm -rf "$LAB_CACHE/failed" && mkdir -p "$LAB_CACHE/failed"
  cp -r "$KUBE_DIR/log" "$LAB_CACHE/failed/" 2>/dev/null || true
  say "up.sh failed; logs: $LAB_CACHE/failed/log"
  "$CLUSTER/down.sh"
}

start() {
  local n
  trap give_up EXIT
  trap 'exit 130' INT TERM
  mkdir -p "$KUBE_DIR"
  ln -sfn "$KUBE_BIN" "$KUBE_DIR/bin"
  make_folders
  lab_net_hold kube
  make_keys "$NODES"
  start_control_plane
  for n in $(seq "$NODES"); do "$CLUSTER/node.sh" up "$n"; done
  wait_for 120 usable || die "the nodes were not ready after 120 s: see $KUBE_DIR/log"
  label_nodes
  wanted >"$KUBE_DIR/wanted"
  trap - EXIT
}

main() {
  case $NODES in [0-9]) ;; *) die "0 to 9 nodes, not $NODES" ;; esac
  need_tools ip:iproute2 nsenter:util-linux unshare:util-linux pgrep:procps sysctl:procps curl:curl openssl:openssl \
    runc:runc nft:nftables iptables:iptables conntrack:conntrack ethtool:ethtool socat:socat buildah:buildah \
    qemu-storage-daemon:qemu-system-common iscsi-inq:libiscsi-bin fusermount3:fuse3 mkfs.xfs:xfsprogs mkfs.ext4:e2fsprogs losetup:mount
  cni_plugins >/dev/null
  lab_lock
  "$CLUSTER/build.sh"
  if healthy; then
    say "the cluster is up: Kubernetes $KUBE, $NODES nodes"
    return
  fi
  [ ! -e "$KUBE_DIR" ] || { say "a cluster is there that is not healthy, or not as asked"; "$CLUSTER/down.sh"; }
  start
  say "the cluster is up: Kubernetes $KUBE, $NODES nodes; kubectl: test/cluster/kubectl.sh"
}

main
