#!/bin/bash
# node-init.sh NODE: process 1 of a node, in its network, mount, pid, uts and ipc namespaces. Started by
# node.sh. Everything on the node descends from it, so ending it ends the kubelet, containerd and every
# container, and takes their mounts along.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"
# shellcheck source=cgroup.sh
. "$CLUSTER/cgroup.sh"
# shellcheck source=node-config.sh
. "$CLUSTER/node-config.sh"
# shellcheck source=node-programs.sh
. "$CLUSTER/node-programs.sh"

trap 'echo "node-init.sh: line $LINENO failed" >&2' ERR
set -E
NODE=$1
DIR=$(node_dir "$NODE")

# forget_lab_mounts: this mount namespace began as a copy of the host's. What the rest of the lab has
# mounted must not stay busy because a node still holds it.
forget_lab_mounts() {
  local target
  cut -d' ' -f2 /proc/self/mounts | sort -r | while read -r target; do
    case $target in "$LAB_STATE"/* | "$LAB_CACHE"/*) umount -l "$target" 2>/dev/null || true ;; esac
  done
}

own_folders() {
  mount --make-rshared /
  mount -t tmpfs -o mode=755 tmpfs /run
  mkdir -p /run/netns /run/lock
  mount --bind "$DIR/containerd" /var/lib/containerd
  mount --bind "$DIR/kubelet" /var/lib/kubelet
  mount --make-rshared /var/lib/kubelet
  mount --bind "$DIR/cni" /var/lib/cni
  mount --bind "$DIR/log" /var/log
  mount --bind "$DIR/volumes" "$KUBE_MOUNTS"
}

# own_iscsi: the initiator in user space, before the machine's own if it has one.
own_iscsi() {
  mkdir -p "$DIR/iscsi"
  export ISCSI_STATE=$DIR/iscsi PATH=$CLUSTER/iscsi:$PATH
  "$CLUSTER/iscsi/prepare.sh" /run/iscsi
}

# shield_sysctls: the kubelet sets these where they differ, and they are the whole machine's (it would
# have it reboot after an oops). On the node they read as it wants them, and nothing is written.
shield_sysctls() {
  local pair file
  for pair in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    file=/run/sysctl/${pair%=*}
    mkdir -p "${file%/*}"
    echo "${pair#*=}" >"$file"
    mount --bind "$file" "/proc/sys/${pair%=*}"
  done
}

# These are the network namespace's own.
set_sysctls() {
  sysctl -qw net.ipv4.ip_forward=1
  [ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || sysctl -qw net.bridge.bridge-nf-call-iptables=1
}

hostname "node$NODE"
forget_lab_mounts
own_folders
own_iscsi
shield_sysctls
set_sysctls
join_cgroups "$NODE"
start_containerd
start_kubelet
start_proxy
wait # for good: bash reaps the orphans meanwhile, and a test may stop or kill the kubelet
