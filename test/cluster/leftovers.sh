#!/bin/bash
# leftovers.sh [--all-processes]: what a lab could leave behind, one sorted line each. It must be the same before
# up.sh and after down.sh; else `diff` shows what stayed behind.
# Of the processes it lists the lab's: by the environment they got from lab.sh, by their program, or by
# namespaces that are not the host's. So other work on the machine is not listed; with --all-processes
# it is, for a machine without other work.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"
ALL=${1:-}

# lines NAME CMD...: the command's output, each line with the name before it.
lines() {
  local name=$1
  shift
  { "$@" 2>/dev/null || true; } | sed "s|^|$name: |"
}

# Ours in full; of the others the topmost, where a container outside its group would appear. What is below
# those comes and goes with sessions and services.
cgroups() {
  find /sys/fs/cgroup -mindepth 1 -maxdepth 2 -type d
  find /sys/fs/cgroup -maxdepth 2 -name flex-lab -exec find {} -mindepth 1 -type d \;
}

folders() {
  ls -d "$LAB_STATE" "$KUBE_MOUNTS" /var/lib/{containerd,kubelet,cni,cinder,containers,nova,ceph} \
    /run/{netns,containerd,runc,flannel,xtables.lock} /etc/cni /opt/cni /var/log/{pods,containers}
}

# Settings of the whole machine that a kubelet, kube-proxy or CNI plugin would like to change.
settings() {
  sysctl vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys \
    kernel.keys.root_maxbytes net.ipv4.ip_forward net.ipv6.conf.all.forwarding net.netfilter.nf_conntrack_max
}

# Names only: the state of the bridge depends on whether anything is attached to it.
control_links() { ip -n "$LAB_NETNS" -br link | cut -d' ' -f1; }

loops() { losetup --noheadings --output NAME,BACK-FILE; }

parent() { awk '/^PPid:/ {print $2}' "/proc/$1/status" 2>/dev/null || true; }

# chain PID: it and its ancestors.
chain() {
  local pid=$1
  while [ "${pid:-0}" -gt 1 ]; do
    echo "$pid"
    pid=$(parent "$pid")
  done
}

# asking PID: the processes that make this snapshot, or called for it, are not left behind.
asking() {
  case " $ANCESTORS " in *" $1 "*) return 0 ;; esac
  case " $(chain "$1" | tr '\n' ' ')" in *" $$ "*) return 0 ;; esac
  return 1
}

of_the_lab() { # PID
  local ns theirs
  case $(readlink "/proc/$1/exe") in "$LAB_CACHE"/* | "$LAB_STATE"/*) return 0 ;; esac
  for ns in net mnt pid; do
    theirs=$(readlink "/proc/$1/ns/$ns") || return 1
    [ "$theirs" = "$(readlink "/proc/$$/ns/$ns")" ] || [ "$theirs" = "$(readlink "/proc/1/ns/$ns")" ] || return 0
  done
  grep -qz '^LAB_STATE=' "/proc/$1/environ"
}

# A kernel thread has no command line; a zombie has neither that nor any resource.
processes() {
  local pid command
  ANCESTORS=$(chain $$ | tr '\n' ' ')
  for pid in /proc/[0-9]*; do
    pid=${pid#/proc/}
    command=$(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -c1-200) || continue
    [ -n "$command" ] || continue
    if [ "$ALL" != --all-processes ]; then of_the_lab "$pid" || continue; fi
    asking "$pid" || echo "$command"
  done
}

{
  lines netns ip netns
  lines mount cat /proc/self/mounts
  lines link ip -br link
  lines address ip -br address
  lines control-link control_links
  lines control-route ip -n "$LAB_NETNS" route
  lines route ip route show table all
  lines route ip -6 route show table all
  lines rule ip rule
  lines nftables nft list ruleset
  lines cgroup cgroups
  lines folder folders
  lines setting settings
  lines loop loops
  lines process processes
} | sort
