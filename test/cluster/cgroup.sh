# shellcheck shell=bash
# /flex-lab/nodeN in every cgroup hierarchy: what a node's kubelet takes for the root.
# Tried: hybrid (version 1 controllers, an empty version 2 under unified/).
# Version 2 alone follows the kernel's documentation but was NOT tried, for lack of such a machine.
CGROUP=/sys/fs/cgroup
CGROUP_V1=(cpu cpuacct cpuset memory devices freezer blkio pids systemd)

cgroup_v2() { [ -e $CGROUP/cgroup.controllers ]; }

make_cgroups() { # NODE
  if cgroup_v2; then make_cgroup_v2 "$1"; else make_cgroups_v1 "$1"; fi
}

make_cgroups_v1() {
  local c dir f
  for c in "${CGROUP_V1[@]}"; do
    [ -d "$CGROUP/$c" ] || continue
    dir=$CGROUP/$c/flex-lab/node$1
    mkdir -p "$dir"
    [ "$c" = cpuset ] || continue
    # A new cpuset has no CPU and no memory, and takes no process until it has.
    for f in cpuset.cpus cpuset.mems; do
      cat "$CGROUP/cpuset/$f" >"$CGROUP/cpuset/flex-lab/$f"
      cat "$CGROUP/cpuset/$f" >"$dir/$f"
    done
  done
}

# In version 2 a group has either processes or controlled children: the node's own go into a leaf.
make_cgroup_v2() {
  local dir controller
  mkdir -p "$CGROUP/flex-lab/node$1/system"
  for dir in "$CGROUP" "$CGROUP/flex-lab" "$CGROUP/flex-lab/node$1"; do
    for controller in cpu cpuset io memory pids hugetlb; do
      echo "+$controller" >"$dir/cgroup.subtree_control" 2>/dev/null || true # one may be in use elsewhere
    done
    grep -qw memory "$dir/cgroup.subtree_control" ||
      die "cgroup v2: $dir does not hand on its controllers (inside a container? use the machine itself)"
  done
}

# join_cgroups NODE: the calling process, and so all that it starts.
join_cgroups() {
  local c
  if cgroup_v2; then
    echo 0 >"$CGROUP/flex-lab/node$1/system/cgroup.procs"
    return
  fi
  for c in "${CGROUP_V1[@]}"; do
    [ ! -d "$CGROUP/$c/flex-lab/node$1" ] || echo 0 >"$CGROUP/$c/flex-lab/node$1/cgroup.procs"
  done
}

cgroups_of() { # GROUP: its directories in all hierarchies (runc makes some under unified/ as well)
  find "$CGROUP" "$CGROUP"/*/ -maxdepth 1 -name flex-lab -type d -printf "%p/$1\n" | sort -u
}

# remove_cgroups GROUP: a killed process stays in its group until it is reaped, so try for 5 s.
remove_cgroups() { wait_for 5 cgroups_gone "$1" || say "cgroups of $1 are still in use"; }

cgroups_gone() {
  local dir left=0
  for dir in $(cgroups_of "$1"); do
    [ -d "$dir" ] || continue
    find "$dir" -depth -type d -exec rmdir {} \; 2>/dev/null || true
    [ ! -d "$dir" ] || left=1
  done
  return $left
}
