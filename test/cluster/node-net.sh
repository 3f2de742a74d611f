# shellcheck shell=bash
# A node's network: a namespace with one leg (eth0) on the bridge of the control namespace, and routes.
# The host itself gets no link, no route and no rule.

make_node_net() { # NODE
  local node=$1 ns addr
  ns=$(node_netns "$node") addr=$(node_addr "$node")
  ip netns add "$ns"
  ip -n "$LAB_NETNS" link add "flex$node" type veth peer name eth0 netns "$ns"
  ip -n "$LAB_NETNS" link set "flex$node" master kbr0 up
  ip -n "$ns" link set lo up
  ip -n "$ns" addr add "$addr/24" dev eth0
  ip -n "$ns" link set eth0 up
  # Service addresses need some route before they are translated; storage and API server are on the bridge.
  ip -n "$ns" route add default via "$LAB_ADDR"
  make_pod_routes "$node"
}

# make_pod_routes NODE: between its pods, those of the others, and the storage.
make_pod_routes() {
  local other
  ip -n "$LAB_NETNS" route replace "$KUBE_PODS.$1.0/24" via "$(node_addr "$1")"
  for other in $(nodes_known); do
    [ "$other" != "$1" ] || continue
    route_to_pods "$1" "$other"
    route_to_pods "$other" "$1"
  done
}

# route_to_pods NODE OTHER: the way of the first node to the pods of the other.
route_to_pods() {
  local route=("$KUBE_PODS.$2.0/24" via "$(node_addr "$2")")
  if [ "$1" = 9 ]; then
    in_vm node ip route replace "${route[@]}"
  elif [ -e "/run/netns/$(node_netns "$1")" ]; then
    ip -n "$(node_netns "$1")" route replace "${route[@]}"
  fi
}

# A namespace that is deleted takes its links along, but only after its last process has ended and the
# kernel has cleaned up. So the link is deleted by name, at once.
remove_node_net() {
  ip -n "$LAB_NETNS" link del "flex$1" 2>/dev/null || true
  ip -n "$LAB_NETNS" route del "$KUBE_PODS.$1.0/24" 2>/dev/null || true
  ip netns del "$(node_netns "$1")" 2>/dev/null || true
}
