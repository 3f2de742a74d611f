# shellcheck shell=bash
# What every command of test/cinder shares: paths, and the way into the chroot. Source it; it runs nothing.
# shellcheck source=test/lab.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lab.sh"

CINDER_SRC=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export CINDER_SRC

# CINDER: the release, as its first number; each is that of a Debian release. 21 is what make e2e runs against.
export CINDER=${CINDER:-$(cat "$LAB_STATE/cinder/release" 2>/dev/null || echo 21)}
case $CINDER in
17) CINDER_SUITE=bullseye ;; # Victoria
21) CINDER_SUITE=bookworm ;; # Zed
26) CINDER_SUITE=trixie ;;   # Epoxy
28) CINDER_SUITE=forky ;;    # Gazpacho
29) CINDER_SUITE=sid ;;      # Hibiscus
*) die "CINDER=$CINDER: 17, 21, 26, 28 or 29" ;;
esac
export CINDER_SUITE
CINDER_ROOTFS=$LAB_CACHE/cinder-rootfs
[ "$CINDER" = 21 ] || CINDER_ROOTFS+=-$CINDER
export CINDER_ROOTFS
export CINDER_STATE=$LAB_STATE/cinder

# in_rootfs CMD...: in the chroot, on the lab's network. Everything execs, so run behind `exec` or lab_start the PID is
# the command's own, and no mount outlives it.
in_rootfs() {
  in_control unshare --mount --propagation private "$CINDER_SRC/enter.sh" "$@"
}

# The same for lab_start, which wants a command and not a function.
export IN_ROOTFS=(nsenter --net="/run/netns/$LAB_NETNS" unshare --mount --propagation private "$CINDER_SRC/enter.sh")

# load_settings: MODE and BACKENDS of the Cinder that is up.
load_settings() {
  MODE=$(cinder_setting MODE) BACKENDS=$(cinder_setting BACKENDS)
  export MODE BACKENDS
}

# settings_now: what this lab would be if it were started now. Equal settings = nothing to do.
settings_now() {
  printf 'MODE=%s BACKENDS=%s CINDER=%s ' "$MODE" "$BACKENDS" "$CINDER"
  printf 'ZONE_FALLBACK=%s FILTERS=%s ' "$ZONE_FALLBACK" "$FILTERS"
  cat "$CINDER_SRC"/{rootfs,conf,drivers,tools}/* "$CINDER_SRC"/{build,enter,services,ceph}.sh | sha256sum | cut -c1-16
}

has_backend() { case ",$BACKENDS," in *",$1,"*) ;; *) return 1 ;; esac; }
