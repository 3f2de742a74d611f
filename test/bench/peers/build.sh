#!/bin/bash
# build.sh DIR [cinder-csi]: the peers of the benchmark from the Go module proxy, into DIR; or those of hack/bench-cinder.sh. A first build
# takes minutes, then seconds. The versions are those of go.mod, local-path/go.mod and cinder-csi/go.mod; gen-gomod.sh writes others.
set -euo pipefail
[ $# = 1 ] || [ "$#:${2:-}" = 2:cinder-csi ] || { sed -n '2s/^# //p' "$0" >&2; exit 64; }
out=$(readlink -m "$1")
cd "$(dirname "$(readlink -f "$0")")"
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-buildvcs=false
mkdir -p "$out"
if [ $# = 2 ]; then
  go build -trimpath -o "$out/" github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner
  cd cinder-csi
  exec go build -trimpath -o "$out/" k8s.io/cloud-provider-openstack/cmd/cinder-csi-plugin
fi
go build -trimpath -o "$out/" ./csi-driver ./library-provisioner github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner
cd local-path
go build -trimpath -o "$out/" github.com/rancher/local-path-provisioner
