//go:build e2e && long && kernels

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What node plugins of CSI drivers attach, node9 attaches by the same requests to its kernel, with
// nothing but what the PV and its Secret say. The plugins themselves do not run.

// mapped attaches an image as rbd map does (do_krbd_map of Ceph's krbd.cc), and returns its device.
// ceph-csi knows the monitors by the cluster's ID.
func (i image) mapped() string {
	i.w.t.Helper()
	i.w.onGuest("modprobe rbd")
	i.w.onGuest(fmt.Sprintf("echo '10.250.0.1:6789 name=%s,secret=%s %s %s -' >/sys/bus/rbd/add_single_major",
		i.user, i.key, i.pool, i.name))
	return i.w.onGuest(`
		for dir in /sys/bus/rbd/devices/*; do
		  [ "$(cat "$dir/name")" != "` + i.name + `" ] || echo "/dev/rbd${dir##*/}"
		done`)
}

func (i image) unmapped(device string) {
	i.w.t.Helper()
	i.w.onGuest("umount " + device + "; echo " + strings.TrimPrefix(device, "/dev/rbd") + " >/sys/bus/rbd/remove_single_major")
}

// mustServeAKernel is that node9 writes to the image. It returns the mounted device.
func (i image) mustServeAKernel() (device string) {
	w := i.w
	w.t.Helper()
	w.whenDone(func() { w.onGuest("umount /mnt/image 2>/dev/null || true") })
	w.step("mounted by the kernel, written", func() {
		device = i.mapped()
		w.onGuest("mkfs.ext4 -q " + device + "; mkdir -p /mnt/image; mount " + device + " /mnt/image; " +
			"echo of node9 >/mnt/image/file; sync")
	})
	return device
}

// mustGrow is that the claim's image grows while it is mounted.
func (i image) mustGrow(claim *corev1.PersistentVolumeClaim, device string) {
	w := i.w
	w.t.Helper()
	w.step("grown", func() {
		w.ask(claim, "2Gi")
		w.eventually(toMount, "the kernel to see 2 GiB", func(ctx context.Context) error {
			size, err := onNode(ctx, "9", "blockdev", "--getsize64", device)
			if err == nil && size != fmt.Sprint(2<<30) {
				err = errors.New(size)
			}
			return err
		})
		size := w.onGuest("resize2fs " + device + " 2>/dev/null; df --output=size -BM /mnt/image | tail -n 1")
		contains(w.t, "the size in MiB that df shows", size, "19")
	})
}

// TestKernelRecipeCephRBD is the recipe docs/recipes/ceph-rbd.md with the client of the kernel.
func TestKernelRecipeCephRBD(t *testing.T) {
	w := newWorld(t, "ceph-rbd")
	w.apply("ceph-rbd")
	w.logsInToCeph()
	w.class(w.ns, expandable)
	w.copyOf(w.exampleConfig("ceph-rbd", "ceph-rbd"), func(data map[string]string) {
		data["monitors"] = "10.250.0.1"
		delete(data, "batch-size") // its account may write batches of the class ceph-rbd
	})
	claim := w.claim(w.ns, "data")
	var i image
	w.step("provisioned", func() { i = w.image(claim) })
	device := i.mustServeAKernel()
	i.mustGrow(claim, device)
	i.unmapped(device)
	w.step("cloned", func() {
		clone := w.image(w.claim(w.ns, "clone", ofSize("2Gi"), from("data")))
		device := clone.mapped()
		equal(w.t, "the file of the clone", w.onGuest("mount "+device+" /mnt/image; cat /mnt/image/file"), "of node9")
		clone.unmapped(device)
	})
	w.step("deleted", func() { w.deletesAllOfCeph(i.pool) })
}

// TestKernelCinderRBD is a volume of Cinder's driver for Ceph.
func TestKernelCinderRBD(t *testing.T) {
	w := newWorld(t, "cinder-rbd")
	claim := w.claim(w.cephClass(), "data")
	var i image
	w.step("provisioned", func() { i = w.image(claim) })
	i.unmapped(i.mustServeAKernel())
	w.step("deleted", func() { w.deletesAllOfCeph(i.pool) })
}

func (w *world) deletesAllOfCeph(pool string) {
	w.t.Helper()
	for _, c := range w.claims {
		w.deleteClaim(c)
		w.vanished(c)
	}
	equal(w.t, "the images that Ceph still has", strings.TrimSpace(w.ceph("rbd", "--pool", pool, "ls")), "")
}

// TestKernelNVMe is a volume of Cinder over NVMe/TCP. The lab's Cinder has no such target: node9
// exports the namespace as Cinder's nvmet does, and connects to itself as csi-driver-nvmf does
// (pkg/nvmf/fabrics.go Connect).
func TestKernelNVMe(t *testing.T) {
	w := newWorld(t, "nvme")
	w.class(w.ns, parameter("type", "nvme"), parameter("connection", "nvmeof"))
	w.config(ownNamespace, w.ns, cinderConfig(map[string]string{
		"nqn": "nqn.2014-08.org.nvmexpress:uuid:5f7a1a52-7a4c-4c51-9d07-0d0c4b1f9b11",
	}))
	claim := w.claim(w.ns, "data")
	var to map[string]string
	w.step("provisioned", func() { to = w.bound(claim).Spec.CSI.VolumeAttributes })
	link := "/dev/disk/by-id/nvme-uuid." + to["deviceUUID"]
	w.step("mounted by the kernel, written", func() {
		w.exportsByNVMe(to, to["deviceUUID"]) // as Cinder 26
		w.connectsByNVMe(to)
		w.onGuest("udevadm settle; mkfs.ext4 -q " + link + "; mkdir -p /mnt/nvme; mount " + link + " /mnt/nvme; " +
			"echo of node9 >/mnt/nvme/file; sync; umount /mnt/nvme; nvme disconnect-all")
		w.connectsByNVMe(to)
		equal(w.t, "the file", w.onGuest("udevadm settle; mount "+link+" /mnt/nvme; cat /mnt/nvme/file; umount /mnt/nvme"), "of node9")
	})
	w.step("a namespace without the volume's UUID has another name", func() {
		w.exportsByNVMe(to, "") // as Cinder 21
		w.connectsByNVMe(to)
		names := w.onGuest("udevadm settle; ls /dev/disk/by-id | grep nvme-uuid")
		contains(w.t, "the names of the device", names, "nvme-uuid.")
		if strings.Contains(names, to["deviceUUID"]) {
			w.t.Errorf("the PV's device is there: %s", names)
		}
	})
	w.step("deleted", func() {
		w.onGuest(leavesNVMe)
		w.deleteClaim(claim)
		w.vanished(claim)
	})
}

// leavesNVMe removes what exportsByNVMe and connectsByNVMe have made.
const leavesNVMe = `
	nvme disconnect-all >/dev/null 2>&1 || true
	iptables -t nat -D OUTPUT -p tcp --dport 4420 -j DNAT --to-destination ` + nodeAddress + ` 2>/dev/null || true
	cd /sys/kernel/config/nvmet 2>/dev/null || exit 0
	rm -f ports/1/subsystems/*
	for dir in subsystems/*/namespaces/* subsystems/* ports/1; do
	  [ ! -d "$dir" ] || rmdir "$dir"
	done
	losetup --detach-all`

// exportsByNVMe makes the subsystem and its namespace. Without a UUID the kernel makes one up
// (nvmet_ns_alloc).
func (w *world) exportsByNVMe(to map[string]string, uuid string) {
	w.t.Helper()
	w.whenDone(func() { w.onGuest(leavesNVMe) })
	w.onGuest(leavesNVMe)
	w.onGuest(strings.NewReplacer("NQN", to["nqn"], "UUID", uuid, "NODE", nodeAddress, "PORT", to["targetTrPort"]).Replace(`
		modprobe -a nvmet-tcp nvme-tcp
		truncate -s 1G /root/namespace
		cd /sys/kernel/config/nvmet
		mkdir -p subsystems/NQN/namespaces/10 ports/1
		echo 1 >subsystems/NQN/attr_allow_any_host
		losetup --find --show /root/namespace >subsystems/NQN/namespaces/10/device_path
		[ -z "UUID" ] || echo "UUID" >subsystems/NQN/namespaces/10/device_uuid
		echo 1 >subsystems/NQN/namespaces/10/enable
		echo tcp >ports/1/addr_trtype
		echo ipv4 >ports/1/addr_adrfam
		echo NODE >ports/1/addr_traddr
		echo PORT >ports/1/addr_trsvcid
		ln -s /sys/kernel/config/nvmet/subsystems/NQN ports/1/subsystems/
		iptables -t nat -A OUTPUT -p tcp --dport 4420 -j DNAT --to-destination NODE`))
}

func (w *world) connectsByNVMe(to map[string]string) {
	w.t.Helper()
	w.onGuest(strings.NewReplacer("NQN", to["nqn"], "TYPE", to["targetTrType"], "ADDR", to["targetTrAddr"], "PORT", to["targetTrPort"],
		"HOST", to["hostNqn"], "ID", to["hostId"]).Replace(
		"echo nqn=NQN,transport=TYPE,traddr=ADDR,trsvcid=PORT,hostnqn=HOST,hostid=ID >/dev/nvme-fabrics"))
}
