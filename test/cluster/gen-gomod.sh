#!/bin/bash
# gen-gomod.sh kubernetes VERSION [FILE.mod]   e.g. gen-gomod.sh kubernetes 1.37.2
# gen-gomod.sh containerd VERSION              e.g. gen-gomod.sh containerd 2.3.7
# Writes go.mod and go.sum anew, of this folder (the Kubernetes that the lab runs unless KUBE says another) or of containerd/.
# With FILE.mod, those two (FILE.mod, FILE.sum) and not go.mod: build.sh names them to Go's -modfile.
# In this folder are those of the older Kubernetes on which the project is tested:
# gen-gomod.sh kubernetes 1.35.4 test/cluster/kube-1.35.4.mod
#
# k8s.io/kubernetes cannot be required like any other module: its own go.mod points its 33 staging
# modules at folders beside it. The same list, pointed at the released modules, is what we need. Those
# replaces are why this is a module of its own, and containerd another: in one module, containerd
# would lift 80 of the versions that Kubernetes was released with.
set -euo pipefail
usage() { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
file=go.mod
[ $# -lt 3 ] || file=$(readlink -m "$3")
cd "$(dirname "$(readlink -f "$0")")"
export GOWORK=off
module=github.com/flex-provisioner/flex-provisioner/test/cluster

# kubernetes_gomod VERSION: 1.37.2 comes with staging modules of v0.37.2.
kubernetes_gomod() {
  local theirs
  theirs=$(go mod download -json "k8s.io/kubernetes@v$1") || { echo "$theirs" >&2; return 1; }
  theirs=$(sed -n 's/.*"GoMod": "\(.*\)",/\1/p' <<<"$theirs")
  cat <<EOF
// Made by gen-gomod.sh; do not edit.
module $module

$(grep -E '^(go|godebug) ' "$theirs")

require k8s.io/kubernetes v$1

tool (
	github.com/onsi/ginkgo/v2/ginkgo
	k8s.io/kubernetes/cmd/kubectl
	k8s.io/kubernetes/test/images/agnhost
)

replace (
$(sed -n "s#^\s*\(k8s.io/[a-z-]*\) => ./staging/.*#\t\1 => \1 v0.${1#1.}#p" "$theirs")
)
EOF
}

# tidy_kubernetes VERSION FILE.mod: replaces the two files when both are complete, so that an interruption leaves no half.
tidy_kubernetes() {
  local tmp
  tmp=$(mktemp -d)
  # shellcheck disable=SC2064 # this very directory
  trap "rm -rf '$tmp'" EXIT
  kubernetes_gomod "$1" >"$tmp/kube.mod"
  go mod tidy -modfile="$tmp/kube.mod"
  cp "$tmp/kube.sum" "${2%.mod}.sum"
  cp "$tmp/kube.mod" "$2.new"
  mv "$2.new" "$2"
}

containerd_gomod() {
  cat <<EOF
// Made by ../gen-gomod.sh; do not edit.
module $module/containerd

$(grep -E '^go ' go.mod)

require github.com/containerd/containerd/v2 v$1

tool (
$(printf '\tgithub.com/containerd/containerd/v2/cmd/%s\n' containerd containerd-shim-runc-v2 ctr)
)
EOF
}

case $#:${1:-} in
  2:kubernetes | 3:kubernetes) tidy_kubernetes "$2" "$file" ;;
  2:containerd)
    mkdir -p containerd
    containerd_gomod "$2" >containerd/go.mod
    rm -f containerd/go.sum
    (cd containerd && go mod tidy)
    ;;
  *) usage ;;
esac
