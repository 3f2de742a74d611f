#!/bin/bash
# build.sh: Kubernetes, etcd, containerd and kubectl from the Go module proxy into $KUBE_BIN (env.sh), one folder a version.
# The versions are those of $KUBE_MOD and containerd/go.mod. If nothing has changed, nothing is built.
# A first build takes 4 to 9 minutes on two cores and 3 GB of Go's build cache.
#   KUBE=VERSION   another Kubernetes than that of go.mod. If it has no kube-VERSION.mod here, one is made in $KUBE_BIN.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"

# Always the same flags: they are part of the build cache's key, and a second set costs minutes.
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off
COMPONENTS=(etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy)

# version_of MODULE DIR: as DIR/go.mod requires it.
version_of() { sed -n "s#^\(require\)\?\s*$1 \(v[^ ]*\).*#\2#p" "$2/go.mod" | head -1; }

# key_of DIR MOD FLAGS...: changes when anything does that goes into the binaries, wherever DIR is.
key_of() {
  local dir=$1 mod=$2
  shift 2
  {
    go version
    printf '%s\n' "$@"
    cat "$mod" "${mod%.mod}.sum"
    find "$dir" -maxdepth 2 -name '*.go' -print0 | sort -z | xargs -0 --no-run-if-empty cat
  } | sha256sum | cut -d' ' -f1
}

# progress NAME: reads `go build -v` (one package a line) and says every 20 s how far it is.
# A line that is no package is an error of the compiler, and is printed.
progress() {
  local line count=0 last='its modules' start=$SECONDS next=$((SECONDS + 20)) status
  while true; do
    status=0
    IFS= read -r -t 1 line || status=$?
    case $status:$line in
      0:'go: downloading '*) last=$line ;;
      0:*' '* | 0:'#'*) echo "$line" >&2 ;;
      0:*) count=$((count + 1)) last=$line ;;
      1:*) return 0 ;;
    esac
    [ $SECONDS -ge $next ] || continue
    say "$1: $((SECONDS - start)) s, $count packages compiled; now $last"
    next=$((SECONDS + 20))
  done
}

# compile NAME DIR GO-BUILD-ARGUMENTS...: PACKAGES come last. Replaces the binaries at once, so that a
# running cluster or an interrupted build never sees half of one.
compile() {
  local name=$1 dir=$2 out
  shift 2
  say "$name: compiling (the first time takes minutes, then seconds)"
  out=$(mktemp -d "$KUBE_BIN/.new.XXXXXX")
  # shellcheck disable=SC2064 # this very directory
  trap "rm -rf '$out'" EXIT
  (cd "$dir" && go build -v -trimpath -o "$out/" "$@" 2>&1) | progress "$name"
  mv -f "$out"/* "$KUBE_BIN/"
  rm -rf "$out"
  say "$name: done"
}

build_kubernetes() {
  local minor at=k8s.io/component-base/version flags
  minor=${KUBE#1.} minor=${minor%%.*}
  flags="-s -w -X $at.gitVersion=v$KUBE -X $at.gitMajor=1 -X $at.gitMinor=$minor -X $at.gitTreeState=clean"
  [ -e "$KUBE_MOD" ] || choose_modules
  up_to_date kubernetes "$CLUSTER" "$KUBE_MOD" "$flags" && return 0
  compile "kubernetes $KUBE" "$CLUSTER" -modfile="$KUBE_MOD" -ldflags "$flags" ./hyperkube
  local c
  for c in "${COMPONENTS[@]}"; do ln -sf hyperkube "$KUBE_BIN/$c"; done
  compile "kubectl $KUBE" "$CLUSTER" -modfile="$KUBE_MOD" -ldflags "$flags" k8s.io/kubernetes/cmd/kubectl
  compile pause "$CLUSTER" -modfile="$KUBE_MOD" -ldflags '-s -w' ./pause
  built kubernetes
}

# choose_modules: for a Kubernetes for which this folder holds none. Its own go.mod pins all of them.
choose_modules() {
  say "kubernetes $KUBE: choosing its modules"
  "$CLUSTER/gen-gomod.sh" kubernetes "$KUBE" "$KUBE_MOD" >/dev/null
}

build_containerd() {
  local module=github.com/containerd/containerd/v2 version flags tags='no_btrfs no_devmapper no_zfs no_aufs'
  version=$(version_of "$module" "$CLUSTER/containerd")
  flags="-s -w -X $module/version.Version=$version"
  up_to_date containerd "$CLUSTER/containerd" "$CLUSTER/containerd/go.mod" "$flags" "$tags" && return 0
  compile "containerd $version" "$CLUSTER/containerd" -ldflags "$flags" -tags "$tags" \
    "$module"/cmd/{containerd,containerd-shim-runc-v2,ctr}
  built containerd
}

# up_to_date NAME DIR MOD FLAGS...: whether exactly this was built. built NAME notes that it now is.
up_to_date() {
  local name=$1
  shift
  KEY=$(key_of "$@")
  [ "$(cat "$KUBE_BIN/.$name.key" 2>/dev/null)" = "$KEY" ] && return 0
  rm -f "$KUBE_BIN/.$name.key"
  return 1
}
built() { echo "$KEY" >"$KUBE_BIN/.$1.key"; }

# Every pod needs the pause image; the nodes import it when they start.
build_pause_image() {
  local context
  [ "$KUBE_BIN/pause" -nt "$LAB_CACHE/images/pause.tar" ] || return 0
  context=$(mktemp -d)
  cp "$KUBE_BIN/pause" "$context/"
  printf 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n' >"$context/Dockerfile"
  rm -f "$LAB_CACHE/images/pause.tar.key"
  "$CLUSTER/build-image.sh" pause:v1 "$context" >/dev/null
  rm -rf "$context"
}

main() {
  need_tools go:golang
  mkdir -p "$KUBE_BIN"
  exec 8>"$KUBE_BIN/.lock" # checkouts share the cache
  flock -n 8 || { say "another build is running: waiting for it"; flock 8; }
  build_kubernetes
  build_containerd
  build_pause_image
}

main "$@"
