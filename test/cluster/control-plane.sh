# shellcheck shell=bash
# etcd, API server, controller manager and scheduler in the control namespace.
# The API server listens on $LAB_ADDR: the endpoint behind the `kubernetes` Service may not be loopback.
#
# Flags of your own, each a list of words:
#   FLEX_APISERVER_FLAGS    added
#   FLEX_CONTROLLERS_FLAGS  instead of the fast ones below; empty = the stock limits (20 requests/s)
#   FLEX_SCHEDULER_FLAGS    likewise (stock: 50 requests/s)
# FLEX_ETCD_SIZE (as mount writes it, 1g): etcd's data have a file system of their own, of that size and in memory, which a test may fill.
FLEX_APISERVER_FLAGS=${FLEX_APISERVER_FLAGS:-}
FLEX_CONTROLLERS_FLAGS=${FLEX_CONTROLLERS_FLAGS---kube-api-qps=200 --kube-api-burst=400 --concurrent-job-syncs=20}
FLEX_SCHEDULER_FLAGS=${FLEX_SCHEDULER_FLAGS---kube-api-qps=200 --kube-api-burst=400}
FLEX_ETCD_SIZE=${FLEX_ETCD_SIZE:-}

# shellcheck disable=SC2034 # up.sh asks for them
CONTROL_PLANE=(etcd kube-apiserver kube-controller-manager kube-scheduler)
ETCD=http://127.0.0.1:12379 ETCD_PEER=http://127.0.0.1:12380

# component NAME ARGS...: its command is kept, by which control.sh starts it again.
component() {
  mkdir -p "$KUBE_DIR/commands"
  printf '%s\0' "$@" >"$KUBE_DIR/commands/$1"
  lab_start "$KUBE_DIR" "$1" nsenter --net="/run/netns/$LAB_NETNS" "$@"
}

# The data lives as long as the lab does: nothing is lost by not waiting for the disk.
start_etcd() {
  mkdir -p "$KUBE_DIR/etcd"
  [ -z "$FLEX_ETCD_SIZE" ] || mount -t tmpfs -o "size=$FLEX_ETCD_SIZE" tmpfs "$KUBE_DIR/etcd"
  component etcd --name lab --data-dir "$KUBE_DIR/etcd/data" --log-level warn --unsafe-no-fsync \
    --listen-client-urls $ETCD --advertise-client-urls $ETCD \
    --listen-peer-urls $ETCD_PEER --initial-advertise-peer-urls $ETCD_PEER --initial-cluster lab=$ETCD_PEER
}

# kubelet-preferred-address-types: logs and exec would look up "node1" in a DNS that is not there.
# enable-aggregator-routing: webhooks are called at their pods' addresses, to which this namespace has
# routes; it has none to service addresses, which only nodes translate.
# NodeRestriction: no kubelet labels its own node for pods that are not for it. It knows a kubelet by its name, system:node:NAME (keys.sh).
# audit: the tests count requests by it, and compare those of a whole run with the shipped roles: nothing of it may be rotated
# away, which the tests check. It takes 2 GB at most, and ends with the cluster.
start_apiserver() {
  # shellcheck disable=SC2086 # a list of flags
  component kube-apiserver --etcd-servers=$ETCD --cert-dir="$KUBE_DIR/pki" \
    --bind-address="$LAB_ADDR" --advertise-address="$LAB_ADDR" --secure-port=6443 \
    --service-cluster-ip-range="$KUBE_SERVICES" --allow-privileged=true \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --token-auth-file="$KUBE_DIR/pki/tokens.csv" \
    --service-account-issuer=https://kubernetes.default.svc \
    --service-account-signing-key-file="$KUBE_DIR/pki/sa.key" --service-account-key-file="$KUBE_DIR/pki/sa.pub" \
    --kubelet-preferred-address-types=InternalIP --enable-aggregator-routing=true --profiling=false \
    --audit-policy-file="$CLUSTER/audit-policy.yaml" --audit-log-path="$KUBE_DIR/audit/audit.log" \
    --audit-log-maxsize=128 --audit-log-maxbackup=15 \
    $FLEX_APISERVER_FLAGS
}

start_controllers() {
  # shellcheck disable=SC2086 # lists of flags
  as controllers kube-controller-manager --use-service-account-credentials \
    --service-account-private-key-file="$KUBE_DIR/pki/sa.key" --root-ca-file="$KUBE_DIR/pki/apiserver.crt" \
    $FLEX_CONTROLLERS_FLAGS
  # shellcheck disable=SC2086
  as scheduler kube-scheduler $FLEX_SCHEDULER_FLAGS
}

# as USER COMPONENT FLAGS...: what the two clients of the API server have in common. There is one of
# each, so an election would only cost time.
as() {
  local config=$KUBE_DIR/kubeconfig/$1.conf
  shift
  component "$@" --kubeconfig="$config" --authentication-kubeconfig="$config" \
    --authorization-kubeconfig="$config" --bind-address=127.0.0.1 --leader-elect=false --profiling=false
}

api_ready() {
  [ -s "$KUBE_DIR/pki/apiserver.crt" ] || return 1
  [ "$(in_control curl -s -m 5 --cacert "$KUBE_DIR/pki/apiserver.crt" \
    -H "Authorization: Bearer $(admin_token)" "$KUBE_API/readyz")" = ok ]
}

# running NAME: a component that ended is named with the end of its log, not waited for.
running() { [ -e "$KUBE_DIR/pids/$1" ] && alive "$(cat "$KUBE_DIR/pids/$1")"; }
must_run() {
  local name
  for name in "$@"; do
    running "$name" && continue
    tail -n 15 "$KUBE_DIR/log/$name.log" >&2 || true
    die "$name ended"
  done
}

api_ready_or_dead() { must_run etcd kube-apiserver && api_ready; }

start_control_plane() {
  start_etcd
  start_apiserver
  wait_for 60 api_ready_or_dead || die "the API server was not ready after 60 s: see $KUBE_DIR/log"
  say "API server is ready"
  start_controllers
}

# State is removed with the lab, so no process needs time to shut down cleanly.
stop_control_plane() {
  local name
  for name in kube-scheduler kube-controller-manager kube-apiserver etcd; do lab_stop "$KUBE_DIR" "$name" KILL; done
  ! mountpoint -q "$KUBE_DIR/etcd" || umount "$KUBE_DIR/etcd"
}
