#!/bin/bash
# build.sh: what Kubernetes' external-storage suite needs, in the lab that is up: into $KUBE_BIN/external the suite, the program of most of its pods and
# ginkgo, all of that Kubernetes' module and its go.mod; into the nodes the two images. No registry is asked: their content is of this machine.
set -euo pipefail
# shellcheck source=../cluster/env.sh
. "$(dirname "$(readlink -f "$0")")/../cluster/env.sh"

bin=$KUBE_BIN/external
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

# The flags of test/cluster/build.sh, whose packages need not be compiled again.
compile() {
  export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off
  cd "$CLUSTER"
  mkdir -p "$bin"
  say "compiling the external-storage suite of Kubernetes $KUBE (the first time takes minutes)"
  go test -c -trimpath -modfile="$KUBE_MOD" -ldflags '-s -w' -o "$bin/external.test" ./external
  go build -trimpath -modfile="$KUBE_MOD" -ldflags '-s -w' -o "$bin/" k8s.io/kubernetes/test/images/agnhost github.com/onsi/ginkgo/v2/ginkgo
}

# image NAME ENTRYPOINT: the tag is the one that the suite asks for. busybox has nsenter, by which the suite looks at a node.
image() {
  local image
  image=$(KUBE_TEST_REPO_LIST=$CLUSTER/../external/registries.yaml "$bin/external.test" -list-images | grep "^localhost/$1:" | sort -V | tail -1)
  cat >"$context/Dockerfile" <<END
FROM scratch
COPY bin /bin
RUN ["/bin/busybox", "--install", "-s", "/bin"]
RUN ["/bin/busybox", "mkdir", "-p", "/tmp", "/etc", "/uploads"]
ENV PATH=/bin
$2
END
  "$CLUSTER/load-image.sh" "$("$CLUSTER/build-image.sh" "$image" "$context")"
}

need_tools /bin/busybox:busybox-static /bin/bash-static:bash-static buildah:buildah
(compile)
mkdir "$context/bin"
install -m 0755 /bin/busybox "$context/bin/busybox"
install -m 0755 /bin/bash-static "$context/bin/bash"
image busybox 'CMD ["/bin/sh"]'
install -m 0755 "$bin/agnhost" "$context/bin/agnhost"
image agnhost 'ENTRYPOINT ["/bin/agnhost"]
CMD ["pause"]'
