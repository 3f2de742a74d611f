#!/bin/bash
# node-guest.sh: runs on the guest `node` of test/vm, and makes it node9 of the cluster. Its kernel
# is Debian's, which has what the machine's may lack: NFS, iSCSI, multipath, the quotas of XFS. The
# programs are the lab's own, by 9p.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"
# shellcheck source=cgroup.sh
. "$CLUSTER/cgroup.sh"
# shellcheck source=node-config.sh
. "$CLUSTER/node-config.sh"
# shellcheck source=node-programs.sh
. "$CLUSTER/node-programs.sh"

NODE=9
DIR=$(node_dir $NODE)
FLEX_PATIENCE=300 # an emulated processor

make_cgroups $NODE
mkdir -p "$KUBE_MOUNTS"
write_node_config $NODE
sysctl -qw net.ipv4.ip_forward=1
[ ! -e /sys/fs/selinux/enforce ] || setenforce 1 # it boots without: Debian's policy denies systemd too much
start_containerd
start_kubelet
start_proxy
wait
