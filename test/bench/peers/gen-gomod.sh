#!/bin/bash
# gen-gomod.sh csi VERSION          e.g. gen-gomod.sh csi 6.4.0: the csi external-provisioner
# gen-gomod.sh local-path VERSION   e.g. gen-gomod.sh local-path 0.0.30: local-path-provisioner
# gen-gomod.sh cinder-csi VERSION   e.g. gen-gomod.sh cinder-csi 1.35.0: cinder-csi-plugin, of cloud-provider-openstack
# Writes go.mod and go.sum anew, of this folder, of local-path/ or of cinder-csi/.
#
# The peers are modules of their own, so that they are built with the versions that they were released with. The csi external-provisioner
# names k8s.io/kubernetes, whose modules need the same list of replacements as in its own go.mod. The sig-storage library is the version
# that it uses.
# Of local-path-provisioner, 0.0.30 is the newest that is both on the module proxy and in the checksum database. Its limit on requests cannot
# be raised, so only its defaults are measured. From 0.0.37 on there are flags, and the tuned row is measured, too.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
export GOWORK=off
module=github.com/flex-provisioner/flex-provisioner/test/bench/peers

csi_gomod() {
  local theirs
  theirs=$(go mod download -json "github.com/kubernetes-csi/external-provisioner/v6@v$1")
  theirs=$(sed -n 's/.*"GoMod": "\(.*\)",/\1/p' <<<"$theirs")
  cat <<MOD
// Made by gen-gomod.sh; do not edit.
module $module

$(grep -E '^(go|godebug) ' "$theirs")

require github.com/kubernetes-csi/external-provisioner/v6 v$1

tool github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner

$(grep -E '^replace ' "$theirs")
MOD
}

local_path_gomod() {
  cat <<MOD
// Made by ../gen-gomod.sh; do not edit.
module $module/local-path

$(grep -E '^go ' go.mod)

require github.com/rancher/local-path-provisioner v$1

tool github.com/rancher/local-path-provisioner
MOD
}

cinder_csi_gomod() {
  local theirs
  theirs=$(go mod download -json "k8s.io/cloud-provider-openstack@v$1")
  theirs=$(sed -n 's/.*"GoMod": "\(.*\)",/\1/p' <<<"$theirs")
  cat <<MOD
// Made by ../gen-gomod.sh; do not edit.
module $module/cinder-csi

$(grep -E '^(go|godebug) ' "$theirs")

require k8s.io/cloud-provider-openstack v$1

tool k8s.io/cloud-provider-openstack/cmd/cinder-csi-plugin

$(sed -n '/^replace (/,/^)/p; /^replace [^(]/p' "$theirs")
MOD
}

tidy() { # FOLDER GO.MOD
  rm -f "$1/go.sum"
  echo "$2" >"$1/go.mod"
  (cd "$1" && go mod tidy)
}

case $#:${1:-} in
  2:csi) tidy . "$(csi_gomod "$2")" ;;
  2:local-path) tidy local-path "$(local_path_gomod "$2")" ;;
  2:cinder-csi) mkdir -p cinder-csi; tidy cinder-csi "$(cinder_csi_gomod "$2")" ;;
  *) sed -n '2,4s/^# //p' "$0" >&2; exit 64 ;;
esac
