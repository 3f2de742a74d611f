# shellcheck shell=bash
# The configuration of one node's containerd, CNI, kubelet and kube-proxy, written beside its state.
#   FLEX_PROXY_MODE       nftables (default) or iptables
#   FLEX_KUBELET_CONFIG   more lines of KubeletConfiguration
CONTAINERD_SOCKET=/run/containerd/containerd.sock # ctr's default; /run is the node's own

# cni_plugins: Debian and upstream put them in different places.
cni_plugins() {
  local dir
  for dir in /usr/lib/cni /opt/cni/bin /usr/libexec/cni; do
    [ ! -x "$dir/bridge" ] || { echo "$dir"; return; }
  done
  die "missing: CNI plugins; apt-get install containernetworking-plugins (or: make deps)"
}

write_node_config() { # NODE
  local node=$1 dir
  dir=$(node_dir "$node")
  mkdir -p "$dir"/{containerd,kubelet,cni,log,volumes,cni-conf}
  write_cni "$node" >"$dir/cni-conf/10-flex-lab.conflist"
  write_containerd "$dir" >"$dir/containerd.toml"
  write_kubelet "$node" "$dir" >"$dir/kubelet.yaml"
  write_proxy "$node" >"$dir/proxy.yaml"
}

write_cni() {
  cat <<EOF
{"cniVersion": "1.0.0", "name": "flex-lab", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "/var/lib/cni/ipam",
            "ranges": [[{"subnet": "$KUBE_PODS.$1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
EOF
}

# restrict_oom_score_adj: without CAP_SYS_RESOURCE (containers, CI) no process may lower that score, and
# runc gives up with "can't get final child's PID from pipe".
write_containerd() {
  cat <<EOF
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]
[grpc]
  address = "$CONTAINERD_SOCKET"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "localhost/pause:v1"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  enable_selinux = $([ -e /sys/fs/selinux/enforce ] && echo true || echo false)
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["$(cni_plugins)"]
    conf_dir = "$1/cni-conf"
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = "$(command -v runc)"
EOF
}

# The disk is the host's: its fill level says nothing about this node, so no pod is evicted because of it.
write_kubelet() {
  cat <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $(node_addr "$1")
containerRuntimeEndpoint: unix://$CONTAINERD_SOCKET
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
failCgroupV1: false
failSwapOn: false
cgroupDriver: cgroupfs
cgroupRoot: /flex-lab/node$1
resolvConf: ""
clusterDomain: cluster.local
clusterDNS: [10.96.0.10]
evictionHard: {memory.available: "50Mi", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%", imagefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
maxPods: 250
kubeAPIQPS: 200
kubeAPIBurst: 400
eventRecordQPS: 0
readOnlyPort: 0
serializeImagePulls: false
volumePluginDir: /var/lib/kubelet/volumeplugins
${FLEX_KUBELET_CONFIG:-}
EOF
}

# conntrack: these limits are the whole machine's and cannot be written from a network namespace.
write_proxy() {
  cat <<EOF
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ${FLEX_PROXY_MODE:-nftables}
clientConnection: {kubeconfig: $KUBE_DIR/kubeconfig/proxy.conf}
hostnameOverride: node$1
clusterCIDR: $KUBE_PODS.0.0/16
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
EOF
}
