#!/bin/bash
# kubectl.sh ARGS...: kubectl as the lab's administrator, from the lab's network (the host has no route to it).
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"

[ -s "$LAB_KUBECONFIG" ] || die "no cluster is up: run test/cluster/up.sh first"
export KUBECONFIG=$LAB_KUBECONFIG # and no flag: a plugin, as kubectl flex, takes none before its name
exec nsenter --net="/run/netns/$LAB_NETNS" kubectl "$@"
