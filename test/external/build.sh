#!/bin/bash
# build.sh: what Kubernetes' external-storage suite needs, in the lab that is up: into $KUBE_BIN/external the suite, the program of some of its pods and
# ginkgo, all of that Kubernetes' module and its go.mod; into the nodes the images of its pods. No registry is asked: their content is of this machine.
set -euo pipefail
# shellcheck source=../cluster/env.sh
. "$(dirname "$(readlink -f "$0")")/../cluster/env.sh"

bin=$KUBE_BIN/external
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT

# The flags of test/cluster/build.sh, whose packages need not be compiled again.
compile() {
  export CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOWORK=off
  cd "$CLUSTER"
  mkdir -p "$bin"
  say "compiling the external-storage suite of Kubernetes $KUBE (the first time takes minutes)"
  go test -c -trimpath -modfile="$KUBE_MOD" -ldflags '-s -w' -o "$bin/external.test" ./external
  go build -trimpath -modfile="$KUBE_MOD" -ldflags '-s -w' -o "$bin/" k8s.io/kubernetes/test/images/agnhost github.com/onsi/ginkgo/v2/ginkgo
}

# image NAME COMMAND: for each tag that the suite has for it.
image() {
  local image
  cat >"$TMP/Dockerfile" <<END
FROM scratch
COPY . /
RUN ["/bin/busybox", "--install", "-s", "/bin"]
RUN ["/bin/busybox", "mkdir", "-p", "/tmp", "/etc", "/uploads"]
ENV PATH=/bin
$2
END
  while read -r image; do
    "$CLUSTER/load-image.sh" "$("$CLUSTER/build-image.sh" "$image" "$TMP/root" "$TMP/Dockerfile")" </dev/null
  done < <(grep "^localhost/$1:" <<<"$images")
}

need_tools /bin/busybox:busybox-static /bin/bash-static:bash-static buildah:buildah
(compile)
images=$(KUBE_TEST_REPO_LIST=$CLUSTER/../external/registries.yaml "$bin/external.test" -list-images)
# busybox has nsenter, by which the suite looks at a node. But its dd knows no nocache, and its shell runs no other dd.
"$CLUSTER/../../hack/with-libraries.sh" "$TMP/root" dd
install -m 0755 /bin/busybox "$TMP/root/bin/busybox"
install -m 0755 /bin/bash-static "$TMP/root/bin/bash"
ln -s bash "$TMP/root/bin/sh"
image busybox 'CMD ["/bin/sh"]'
image glibc-dns-testing 'CMD ["/bin/sh"]'
image nginx 'CMD ["/bin/sleep", "86400"]' # only its shell is used
install -m 0755 "$bin/agnhost" "$TMP/root/bin/agnhost"
image agnhost 'ENTRYPOINT ["/bin/agnhost"]
CMD ["pause"]'
