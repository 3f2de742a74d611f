#!/bin/bash
# gen-gomod.sh K8S_VERSION CONTAINERD_VERSION   e.g. gen-gomod.sh v1.36.3 v2.3.7
# Writes go.mod and go.sum of this folder and of containerd/ anew, for other versions.
#
# k8s.io/kubernetes cannot be required like any other module: its own go.mod points its 33 staging
# modules at folders beside it. The same list, pointed at the released modules, is what we need. Those
# replaces are why this is a module of its own, and containerd another: in one module, containerd
# would lift 80 of the versions that Kubernetes was released with.
set -euo pipefail
[ $# = 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
cd "$(dirname "$(readlink -f "$0")")"
export GOWORK=off
module=github.com/flex-provisioner/flex-provisioner/test/cluster

# kubernetes_gomod VERSION: v1.36.3 comes with staging modules of v0.36.3.
kubernetes_gomod() {
  local theirs
  theirs=$(go mod download -json "k8s.io/kubernetes@$1" | sed -n 's/.*"GoMod": "\(.*\)",/\1/p')
  cat <<EOF
// Made by gen-gomod.sh $1; do not edit.
module $module

$(grep -E '^(go|godebug) ' "$theirs")

require k8s.io/kubernetes $1

tool k8s.io/kubernetes/cmd/kubectl

replace (
$(sed -n "s#^\s*\(k8s.io/[a-z-]*\) => ./staging/.*#\t\1 => \1 v0.${1#v1.}#p" "$theirs")
)
EOF
}

containerd_gomod() {
  cat <<EOF
// Made by ../gen-gomod.sh; do not edit.
module $module/containerd

$(grep -E '^go ' go.mod)

require github.com/containerd/containerd/v2 $1

tool (
$(printf '\tgithub.com/containerd/containerd/v2/cmd/%s\n' containerd containerd-shim-runc-v2 ctr)
)
EOF
}

mkdir -p containerd
kubernetes_gomod "$1" >go.mod.new
mv go.mod.new go.mod
containerd_gomod "$2" >containerd/go.mod
rm -f go.sum containerd/go.sum
go mod tidy
(cd containerd && go mod tidy)
