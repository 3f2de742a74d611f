# shellcheck shell=bash
# What test/cluster and test/cinder share: where things live, one lock, one network
# namespace for the control plane and the storage, and processes started and ended by PID.
# Source it; it runs nothing.

# What is built is kept after a lab and shared by checkouts; state is kept as long as the lab is up.
export LAB_CACHE=${FLEX_LAB_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/flex-provisioner}
export LAB_STATE=/var/lib/flex-lab
export LAB_NETNS=flex-control          # API server, Cinder, tgt, keystone, Ceph; pods reach it by route
export LAB_ADDR=10.250.0.1             # everything listens here
export LAB_ADDR2=10.250.0.2            # the second iSCSI portal
export LAB_KUBECONFIG=$LAB_STATE/kube/kubeconfig/admin.conf

# A proxy for Go modules and packages cannot reach the lab.
case ${NO_PROXY:-} in
  *10.250.0.0/24*) ;;
  *) export NO_PROXY="${NO_PROXY:+$NO_PROXY,}localhost,127.0.0.1,10.250.0.0/24,10.251.0.0/16,10.96.0.0/16,.svc" ;;
esac
export no_proxy=$NO_PROXY

LAB_T0=${LAB_T0:-$(date +%s%N)}
export LAB_T0

# say MESSAGE...: one line of progress, with the seconds since the start.
say() {
  local ms=$((($(date +%s%N) - LAB_T0) / 1000000))
  printf '%4d.%d s  %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$*" >&2
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# lab_lock: names, addresses and ports are fixed, so only one command may change the lab at a time.
# The children of a holder (cinder-up called by demo, say) share its lock.
lab_lock() {
  [ -z "${LAB_LOCKED:-}" ] || return 0
  [ "$(id -u)" = 0 ] || die "the lab needs root (namespaces, mounts, cgroups): run this as root"
  exec 9>"$LAB_STATE.lock"
  flock -n 9 || { say "another command is changing the lab: waiting for it"; flock 9; }
  export LAB_LOCKED=1
}

# lab_net_hold USER: the control namespace exists from its first user to its last, in either order.
lab_net_hold() {
  mkdir -p "$LAB_STATE/net-users"
  touch "$LAB_STATE/net-users/$1"
  [ -z "$(ip -n "$LAB_NETNS" link show kbr0 up 2>/dev/null)" ] || return 0
  ip netns del "$LAB_NETNS" 2>/dev/null || true # half made, by a command that was interrupted
  # The first `ip netns add` mounts /run/netns on itself, and no `ip` undoes that.
  [ -d /run/netns ] || touch "$LAB_STATE/netns-made"
  mountpoint -q /run/netns || touch "$LAB_STATE/netns-mounted"
  ip netns add "$LAB_NETNS"
  ip -n "$LAB_NETNS" link set lo up
  # A bridge without an address of its own takes that of a port, and another one when that port (a node) is removed:
  # all other nodes would send to an address that no longer exists for a while.
  ip -n "$LAB_NETNS" link add kbr0 address 02:fe:00:00:00:01 type bridge
  ip -n "$LAB_NETNS" addr add "$LAB_ADDR/24" dev kbr0
  ip -n "$LAB_NETNS" addr add "$LAB_ADDR2/24" dev kbr0
  ip -n "$LAB_NETNS" link set kbr0 up
}

lab_net_release() {
  rm -f "$LAB_STATE/net-users/$1"
  [ ! -d "$LAB_STATE/net-users" ] || rmdir "$LAB_STATE/net-users" 2>/dev/null || return 0 # still in use
  ip netns del "$LAB_NETNS" 2>/dev/null || true
  if [ -e "$LAB_STATE/netns-mounted" ] && [ -z "$(ls -A /run/netns)" ]; then
    umount /run/netns
    [ ! -e "$LAB_STATE/netns-made" ] || rmdir /run/netns
  fi
  rm -f "$LAB_STATE/netns-mounted" "$LAB_STATE/netns-made"
  rmdir "$LAB_STATE" 2>/dev/null || true
}

# in_control CMD...: run a command on the lab's network. The host keeps loopback only.
in_control() { nsenter --net="/run/netns/$LAB_NETNS" "$@"; }

# alive PID: a zombie whose parent is slow to reap it is not alive, unless threads of it still run: they hold its sockets.
alive() {
  awk '/^State:/ { zombie = $2 ~ /[ZX]/ } /^Threads:/ { threads = $2 }
    END { exit !(threads > 1 || threads == 1 && !zombie) }' "/proc/$1/status" 2>/dev/null
}

# started_at PID: in ticks since boot. A pid alone may belong to another process by now (after a reboot, say).
started_at() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

# lab_start DIR NAME CMD...: a process in a session of its own; DIR/pids/NAME and DIR/log/NAME.log.
lab_start() {
  local dir=$1 name=$2
  shift 2
  mkdir -p "$dir/pids" "$dir/log"
  setsid nohup "$@" >>"$dir/log/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$dir/pids/$name"
  started_at $! >"$dir/pids/.$name.started"
  disown $! # or bash reports "Killed" when we end it
}

# lab_stop DIR NAME [SIGNAL]: end that process's session, and wait until it has ended (KILL after 5 s).
lab_stop() {
  local file=$1/pids/$2 mark=$1/pids/.$2.started signal=${3:-TERM} pid
  [ -e "$file" ] || return 0
  pid=$(cat "$file")
  if [ ! -e "$mark" ] || [ "$(cat "$mark")" = "$(started_at "$pid")" ]; then
    kill "-$signal" -- "-$pid" 2>/dev/null || true
    for _ in $(seq 100); do alive "$pid" || break; sleep 0.05; done
    kill -KILL -- "-$pid" 2>/dev/null || true
    while alive "$pid"; do sleep 0.05; done
  fi
  rm -f "$file" "$mark"
}

# lab_kill DIR NAME: end that process's session without notice. It fails if the process has ended already: a test would see the death of nothing.
lab_kill() {
  local file=$1/pids/$2 mark=$1/pids/.$2.started pid killed=
  pid=$(cat "$file" 2>/dev/null) && [ "$(cat "$mark")" = "$(started_at "$pid")" ] && alive "$pid" && kill -KILL -- "-$pid" 2>/dev/null && killed=1
  lab_stop "$1" "$2" KILL
  [ -n "$killed" ] || die "$2 does not run: there is nothing to kill"
}

# need_tools TOOL:PACKAGE...: name everything that is missing at once, with the command that installs it.
need_tools() {
  local pair missing=() packages=()
  for pair in "$@"; do
    PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null 2>&1 || [ -e "${pair%%:*}" ] && continue
    missing+=("${pair%%:*}")
    packages+=("${pair##*:}")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  die "missing: ${missing[*]}
  apt-get install -y --no-install-recommends $(printf '%s\n' "${packages[@]}" | sort -u | tr '\n' ' ')
  (or: make deps)"
}

# cinder_setting NAME: MODE, BACKENDS, CINDER, ZONE_FALLBACK or FILTERS of the Cinder that is up.
cinder_setting() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" "$LAB_STATE/cinder/settings"; }

# login_of OPENRC: how this account of the Cinder that is up logs in.
login_of() {
  case $(cinder_setting MODE)/$1 in
  noauth/*) echo noauth ;;
  */openrc) echo "keystone, password" ;;
  *) echo "keystone, ${1#openrc.}" ;;
  esac
}

# add_result LOGIN BACKENDS SUITE TESTS SECONDS: a row of the table that e2e-long prints, which is in FLEX_RESULTS.
add_result() {
  local IFS=$'\t' row
  row=("$(cinder_setting CINDER)" "$@")
  [ -z "${FLEX_RESULTS:-}" ] || echo "${row[*]}" >>"$FLEX_RESULTS"
}
