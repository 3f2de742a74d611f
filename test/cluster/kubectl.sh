#!/bin/bash
# kubectl.sh ARGS...: kubectl as the lab's administrator, from the lab's network (the host has no route to it).
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"

[ -s "$LAB_KUBECONFIG" ] || die "no cluster is up: run test/cluster/up.sh first"
exec nsenter --net="/run/netns/$LAB_NETNS" kubectl --kubeconfig "$LAB_KUBECONFIG" "$@"
