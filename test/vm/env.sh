# shellcheck shell=bash
# What the scripts of the guests share. Source it; it runs nothing.
VM=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck source=../lab.sh
. "$VM/../lab.sh"

export VM
export VM_DIR=$LAB_STATE/vm    # keys, disks, logs; removed by down.sh
export VM_LIMIT=${VM_LIMIT:-60m} # a guest that is forgotten ends itself
export VM_SELINUX=${VM_SELINUX:-} # if it is set, the guest `node` is one that enforces SELinux

# vm_addr NAME: the address of a guest on kbr0. That of node is node9's of the cluster, which it can
# become (test/cluster/node.sh up 9).
vm_addr() {
  case $1 in
    box) echo 10.250.0.41 ;;
    node) echo 10.250.0.19 ;;
    *) die "there is no guest $1: box or node" ;;
  esac
}

# has_selinux NAME: Debian 12's policy knows no containers, so this guest is of Debian 13.
has_selinux() { [ "$1" = node ] && [ -n "$VM_SELINUX" ]; }

# vm_image NAME: the folder of the image that build.sh builds for a guest.
vm_image() { if has_selinux "$1"; then echo "$LAB_CACHE/vm-selinux"; else echo "$LAB_CACHE/vm"; fi; }

# vm_tap NAME: the name of its interface in the lab's network namespace.
vm_tap() { echo "vm-$1"; }

vm_names() {
  find "$VM_DIR/pids" -maxdepth 1 -name '[a-z]*' -printf '%f\n' 2>/dev/null | sort
}

# in_vm NAME CMD...: runs a command on a guest, as root. The login shell may be any.
in_vm() {
  local addr
  addr=$(vm_addr "$1")
  shift
  in_control ssh -F none -i "$VM_DIR/key" -o "UserKnownHostsFile=$VM_DIR/known_hosts" \
    -o BatchMode=yes -o IdentitiesOnly=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 \
    -o LogLevel=ERROR -- "root@$addr" "$@"
}
