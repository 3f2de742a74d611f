# shellcheck shell=bash
# What the scripts of the cluster share. Source it; it runs nothing.
CLUSTER=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=../lab.sh
. "$CLUSTER/../lab.sh"

export CLUSTER
umask 022 # pods that are not root read what is written here
# The user's KUBE is the Kubernetes that is built and run, such as 1.35.4; without it that of go.mod.
KUBE_DEFAULT=$(sed -n 's#^\(require\)\?\s*k8s.io/kubernetes v##p' "$CLUSTER/go.mod")
KUBE=${KUBE:-$KUBE_DEFAULT}
export KUBE=${KUBE#v}
[[ $KUBE =~ ^1\.[0-9]+\.[0-9]+$ ]] || die "KUBE=$KUBE: a version such as $KUBE_DEFAULT is wanted"

# KUBE_BIN holds what build.sh built, KUBE_MOD its module versions: in this folder, or made by build.sh for a version of which
# there are none.
export KUBE_DIR=$LAB_STATE/kube     # keys, kubeconfigs, etcd's data, logs, nodes; removed by down.sh
export KUBE_BIN=$LAB_CACHE/bin-$KUBE KUBE_MOD=$CLUSTER/kube-$KUBE.mod
if [ "$KUBE" = "$KUBE_DEFAULT" ]; then
  KUBE_BIN=$LAB_CACHE/bin KUBE_MOD=$CLUSTER/go.mod
elif [ ! -e "$KUBE_MOD" ]; then
  KUBE_MOD=$KUBE_BIN/kube.mod
fi
export KUBE_API=https://$LAB_ADDR:6443
export KUBE_MOUNTS=/var/lib/flex-volumes # a directory of its own on each node, for hostPath tests
# What runs comes first: of a cluster that is up, whatever KUBE says.
export PATH=$KUBE_DIR/bin:$KUBE_BIN:$PATH:/usr/sbin:/sbin

# kube_has MINOR: whether it is Kubernetes 1.MINOR or later.
kube_has() { [ "$(echo "$KUBE" | cut -d. -f2)" -ge "$1" ]; }

# The containers' network, the services' network. Nodes are 10.250.0.11, .12 ...; their pods 10.251.1.0/24 ...
export KUBE_PODS=10.251 KUBE_SERVICES=10.96.0.0/16

node_addr() { echo "10.250.0.1$1"; }
node_netns() { echo "flex-node$1"; }
node_dir() { echo "$KUBE_DIR/node$1"; }
nodes_known() { find "$KUBE_DIR" -maxdepth 1 -name 'node[1-9]' -printf '%f\n' 2>/dev/null | sed 's/node//' | sort; }

# wait_for SECONDS CMD...: until CMD succeeds.
wait_for() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ $SECONDS -lt $end ] || return 1
    sleep 0.05
  done
}
