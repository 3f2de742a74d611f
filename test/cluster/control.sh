#!/bin/bash
# control.sh kill NAME     end a component of the control plane without notice: etcd, kube-apiserver, kube-controller-manager, kube-scheduler. It must run
# control.sh start NAME    start it again, by the same command. One that runs is left alone; until it serves, its clients have to wait
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"
# shellcheck source=control-plane.sh
. "$CLUSTER/control-plane.sh"

start() {
  local command
  ! running "$1" || return 0
  mapfile -d '' -t command <"$KUBE_DIR/commands/$1"
  component "${command[@]}"
}

usage() {
  sed -n '2,3s/^# //p' "$0" >&2
  exit 64
}

[[ -n ${2:-} && " ${CONTROL_PLANE[*]} " == *" $2 "* ]] || usage
[ -s "$LAB_KUBECONFIG" ] || die "no cluster is up: run test/cluster/up.sh first"
lab_lock
case $1 in
  kill) lab_kill "$KUBE_DIR" "$2" ;;
  start) start "$2" ;;
  *) usage ;;
esac
