#!/bin/bash
# build.sh DIR: the peers of the benchmark from the Go module proxy, into DIR. A first build takes minutes, then seconds.
# The versions are those of go.mod and local-path/go.mod; gen-gomod.sh writes others.
set -euo pipefail
[ $# = 1 ] || { sed -n '2s/^# //p' "$0" >&2; exit 64; }
out=$(readlink -m "$1")
cd "$(dirname "$(readlink -f "$0")")"
export CGO_ENABLED=0 GOWORK=off GOFLAGS=-buildvcs=false
mkdir -p "$out"
go build -trimpath -o "$out/" ./csi-driver ./library-provisioner github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner
cd local-path
go build -trimpath -o "$out/" github.com/rancher/local-path-provisioner
