# shellcheck shell=bash
# The programs of a node: NODE is its number, and DIR has their configuration (node-config.sh).

start_containerd() {
  containerd --config "$DIR/containerd.toml" >"$KUBE_DIR/log/containerd$NODE.log" 2>&1 &
  wait_for "${FLEX_PATIENCE:-30}" ctr version >/dev/null 2>&1 || die "containerd did not answer"
  ctr -n k8s.io images import --local "$LAB_CACHE/images/pause.tar" >/dev/null
}

start_kubelet() {
  kubelet --config "$DIR/kubelet.yaml" --kubeconfig "$KUBE_DIR/kubeconfig/node$NODE.conf" \
    --hostname-override="node$NODE" --node-ip="$(node_addr "$NODE")" \
    --node-labels="topology.kubernetes.io/region=lab,topology.kubernetes.io/zone=zone$NODE" \
    >"$KUBE_DIR/log/kubelet$NODE.log" 2>&1 &
}

start_proxy() {
  kube-proxy --config "$DIR/proxy.yaml" >"$KUBE_DIR/log/kube-proxy$NODE.log" 2>&1 &
}
