#!/bin/bash
# up.sh NAME...: starts guests, box or node, and waits until each answers over ssh:
# test/vm/ssh.sh NAME CMD. A guest that runs is left alone. It is emulated, ten to twenty times
# slower than the machine: it shows how things behave, never how fast.
#
# A guest writes to its own copy of the image, which is as long as the guest: a reboot keeps it.
# Its second disk, /dev/vdb, is an empty file of 4 GiB. After VM_LIMIT it ends by itself. It can
# mount three folders of the machine by 9p, by their names there: test, LAB_CACHE, LAB_STATE.
set -euo pipefail
# shellcheck source=env.sh
. "$(dirname "$(readlink -f "$0")")/env.sh"

# make_keys: of the guests that are up at the same time. Their host key is that of the image.
make_keys() {
  local name key
  mkdir -p "$VM_DIR/log"
  [ -e "$VM_DIR/key" ] || ssh-keygen -q -t ed25519 -N '' -C lab -f "$VM_DIR/key"
  for key in "$LAB_CACHE"/vm{,-selinux}/host-key.pub; do
    [ -e "$key" ] || continue
    for name in box node; do
      echo "$(vm_addr "$name") $(cut -d' ' -f1-2 "$key")"
    done
  done >"$VM_DIR/known_hosts"
}

# add_tap NAME: its interface, on the lab's bridge.
add_tap() {
  local tap
  tap=$(vm_tap "$1")
  ip -n "$LAB_NETNS" link del "$tap" 2>/dev/null || true
  ip -n "$LAB_NETNS" tuntap add dev "$tap" mode tap
  ip -n "$LAB_NETNS" link set "$tap" master kbr0 up
}

# share TAG DIR [OPTIONS]: the arguments of qemu for a folder that the guest can mount.
share() {
  echo "-virtfs local,id=$1,path=$2,mount_tag=$1,security_model=none,multidevs=remap${3:-}"
}

# start NAME: its root disk is a snapshot, whose changes are in a file of TMPDIR without a name.
# systemd reads address, name and key: the first two from the kernel's command line, the last from
# the firmware.
start() {
  local name=$1
  local addr image disk=$VM_DIR/$1.img shares security=
  local -x TMPDIR=$VM_DIR
  addr=$(vm_addr "$name")
  image=$(vm_image "$name")
  ! has_selinux "$name" || security=security=selinux
  add_tap "$name"
  rm -f "$disk"
  truncate -s 4G "$disk"
  read -ra shares < <(echo "$(share test "$VM/.." ,readonly=on)" \
    "$(share cache "$LAB_CACHE" ,readonly=on)" "$(share state "$LAB_STATE")")
  lab_start "$VM_DIR" "$name" nsenter --net="/run/netns/$LAB_NETNS" timeout -k 10 "$VM_LIMIT" \
    qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 1536 -nodefaults -display none \
    -kernel "$image/vmlinuz" -initrd "$image/initrd.img" \
    -append "root=/dev/vda rw console=ttyS0 net.ifnames=0 panic=10 mitigations=off quiet \
      systemd.hostname=$name ip=$addr::$LAB_ADDR:255.255.255.0:$name:eth0:off $security" \
    -smbios "type=11,value=io.systemd.credential.binary:ssh.authorized_keys.root=$(
      base64 -w 0 "$VM_DIR/key.pub"
    )" \
    -drive "file=$image/root.img,if=virtio,format=raw,snapshot=on" \
    -drive "file=$disk,if=virtio,format=raw" \
    -netdev "tap,id=lab,ifname=$(vm_tap "$name"),script=no,downscript=no" \
    "${shares[@]}" -device "virtio-net-pci,netdev=lab,mac=02:fe:00:00:01:${addr##*.}" -device virtio-rng-pci \
    -serial "file:$VM_DIR/log/$name.serial"
}

# answers NAME: systemd has started what it starts, so nothing uses the processor any more.
answers() {
  alive "$(cat "$VM_DIR/pids/$1")" || die "the guest $1 has ended: see $VM_DIR/log"
  in_vm "$1" systemctl is-system-running --wait >/dev/null 2>&1
  [ $? != 255 ]
}

# await NAME: the limit is that of a busy machine.
await() {
  local end=$((SECONDS + 400))
  until answers "$1"; do
    [ $SECONDS -lt $end ] || die "the guest $1 does not answer after 400 s: see $VM_DIR/log"
    sleep 1
  done
  say "the guest $1 answers at $(vm_addr "$1")"
}

running() { [ -e "$VM_DIR/pids/$1" ] && alive "$(cat "$VM_DIR/pids/$1")"; }

main() {
  local name
  [ $# -gt 0 ] || die "which guest? box or node"
  need_tools qemu-system-x86_64:qemu-system-x86 ssh:openssh-client ip:iproute2 nsenter:util-linux
  for name; do vm_addr "$name" >/dev/null; done
  lab_lock
  for name; do "$VM/build.sh" "$name"; done
  lab_net_hold vm
  make_keys
  for name; do
    running "$name" || start "$name"
  done
  for name; do await "$name"; done
}

main "$@"
