# shellcheck shell=bash
# What the scripts of the cluster share. Source it; it runs nothing.
CLUSTER=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=../lab.sh
. "$CLUSTER/../lab.sh"

export CLUSTER
umask 022 # pods that are not root read what is written here
export KUBE=$LAB_STATE/kube         # keys, kubeconfigs, etcd's data, logs, nodes; removed by down.sh
export KUBE_BIN=$LAB_CACHE/bin      # what build.sh built
export KUBE_API=https://$LAB_ADDR:6443
export KUBE_MOUNTS=/var/lib/flex-volumes # a directory of its own on each node, for hostPath tests
export PATH=$KUBE_BIN:$PATH:/usr/sbin:/sbin

# The containers' network, the services' network. Nodes are 10.250.0.11, .12 ...; their pods 10.251.1.0/24 ...
export KUBE_PODS=10.251 KUBE_SERVICES=10.96.0.0/16

node_addr() { echo "10.250.0.1$1"; }
node_netns() { echo "flex-node$1"; }
node_dir() { echo "$KUBE/node$1"; }
nodes_known() { find "$KUBE" -maxdepth 1 -name 'node[1-9]' -printf '%f\n' 2>/dev/null | sed 's/node//' | sort; }

# wait_for SECONDS CMD...: until CMD succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.05
  done
}
