//go:build boxes

package remote

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// zfsOnARealBox is the recipe zfs on the guest, which has a pool tank on a logical volume of vg, and
// a data set tank/flex as docs/recipes/zfs.md makes it.
func zfsOnARealBox() recipe {
	r := overZFS()
	r.onBox = true
	r.source = `{"nfs":{"path":"/tank/flex/pvc-` + first + `","server":"` + guests["box"] + `"}}`
	r.setUp = func(w *world) {
		onRealBox(w)
		w.properties["parent"], w.properties["nfs-server"] = "tank/flex", guests["box"]
		mustGuest(w.t, "box", `
			vgs vg >/dev/null 2>&1 || vgcreate --metadatasize 64m vg /dev/vdb
			if ! zpool list tank >/dev/null 2>&1; then
			  modprobe zfs
			  systemctl enable --now nfs-server
			  lvcreate --yes --size 1G --name zfs vg
			  zpool create tank /dev/vg/zfs
			  zfs create -o sharenfs='rw=@10.250.0.0/24,no_root_squash' -o atime=off tank/flex
			fi`)
	}
	r.volumes = func(w *world) map[string]int64 {
		found := map[string]int64{}
		for line := range strings.Lines(mustGuest(w.t, "box", `
			zfs list -Hp -d 1 -o name,refquota,mountpoint tank/flex | grep pvc- | while read -r name size path; do
			  ! exportfs | grep -q "^$path" || echo "${name#*pvc-}" "$size"
			done`)) {
			var uid string
			var size int64
			if n, err := fmt.Sscan(line, &uid, &size); n != 2 {
				w.t.Fatal(err)
			}
			found[uid] = size
		}
		return found
	}
	r.left = func(w *world) []string {
		return strings.Fields(mustGuest(w.t, "box", `
			zfs list -H -d 1 -o name tank/flex | grep pvc- || true
			exportfs | grep -o 'pvc-[0-9a-f-]*' || true
			ls /tank/flex | grep pvc- || true`))
	}
	return r
}

// TestARealBoxWithZFS is the recipe on OpenZFS 2.1, Debian's NFS server and the client of its
// kernel. Its steps are the cells of a table, and each needs the one before.
func TestARealBoxWithZFS(t *testing.T) {
	w := newWorld(t, zfsOnARealBox())
	c := claim(1, many, func(c *contract.Request) { c.Size = 64 * mebi })
	w.step("provisioned", func() {
		for range 2 {
			w.mustEnd(w.run(contract.Provision, c), 0, "")
			w.mustHave(64*mebi, c)
			w.mustHavePV(c)
		}
		w.mustEnd(w.run(contract.List, claim(9)), 0, `{"lines":1}`)
		full := claim(2, func(c *contract.Request) { c.Size = 4096 * mebi })
		w.mustEnd(w.run(contract.Provision, full), contract.ExitCapacity, "claim: the storage has no room")
	})
	w.step("mounted by the kernel", func() { w.mountShare("node", c) })
	w.step("written", func() {
		w.writeShare("node", c, "of the node")
		w.mustBeLimited(c, 64*mebi)
		w.mustListWhatIsUsed(65 * mebi) // see mustBeLimited
	})
	w.step("read by a second client", func() {
		w.mountShare("box", c)
		w.mustReadShare("box", c, "of the node")
		w.writeShare("box", c, "of the box")
		w.mustReadShare("node", c, "of the box")
		mustGuest(w.t, "box", `umount "/mnt/$1"`, c.PVName)
	})
	w.step("grown", func() {
		c.Size = 128 * mebi
		w.mustEnd(w.run(contract.Expand, c), 0, fmt.Sprintf(`"capacity":%d}`, 128*mebi))
		w.mustBeLimited(c, 128*mebi)
	})
	w.step("there after a reboot", func() {
		reboot(w.t, "box", "systemctl reboot")
		e, _ := w.again(contract.Provision, c)
		w.mustEnd(e, 0, "")
		w.mustHave(128*mebi, c)
		w.mustReadShare("node", c, "of the box")
		w.writeShare("node", c, "after the reboot")
	})
	w.step("deleted", func() {
		mustGuest(w.t, "box", `zfs snapshot "tank/flex/$1@hourly"`, c.PVName)
		w.mustEnd(w.run(contract.Delete, c), contract.ExitTempFail, "claim: a node still has files of the volume open")
		w.mustDeleteOfADeadNode(c)
		w.mustEnd(w.run(contract.Delete, c), 0, "")
	})
	w.step("repeated after a kill", func() { w.mustRepeatZFS() })
}

// mustDeleteOfADeadNode deletes a volume whose node has never closed its files: the administrator
// does what docs/recipes/zfs.md says.
func (w *world) mustDeleteOfADeadNode(c contract.Request) {
	w.t.Helper()
	mustGuest(w.t, "node", `iptables -I OUTPUT -d "$1" -p tcp --dport 2049 -j DROP`, guests["box"])
	defer mustGuest(w.t, "node", `
		iptables -D OUTPUT -d "$1" -p tcp --dport 2049 -j DROP
		umount -l "/mnt/$2"`, guests["box"], c.PVName)
	mustGuest(w.t, "box", `
		for client in /proc/fs/nfsd/clients/*; do
		  if grep -q "^address: \"$1:" "$client/info"; then echo expire >"$client/ctl"; fi
		done`, guests["node"])
	e, _ := w.again(contract.Delete, c)
	w.mustEnd(e, 0, "")
	w.mustHaveNothing()
}

// mustRepeatZFS kills runs at each of their steps on the box.
func (w *world) mustRepeatZFS() {
	w.t.Helper()
	for i, step := range []string{"zfs create", "zfs share", "exportfs"} {
		w.api.Forget() // the PVs of the deleted volumes
		c := claim(1, many, func(c *contract.Request) { c.Size = 64 * mebi })
		w.mustDie(contract.Provision, c, step, "all")
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.mustHave(64*mebi, c)
		w.mustHavePV(c)
		if i == 0 { // what a run has made that was killed serves a node
			w.mountShare("node", c)
			w.writeShare("node", c, "after a kill")
			mustGuest(w.t, "node", `umount "/mnt/$1"`, c.PVName)
			c.Size = 128 * mebi
			w.mustDie(contract.Expand, c, "zfs set", "all")
			w.mustEnd(w.run(contract.Expand, c), 0, fmt.Sprintf(`"capacity":%d}`, 128*mebi))
		}
		w.mustDie(contract.Delete, c, "zfs destroy", "all")
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		w.mustHaveNothing()
	}
}

// mountShare mounts the claim's PV on a guest as the kubelet does.
func (w *world) mountShare(name string, c contract.Request) {
	w.t.Helper()
	mustGuest(w.t, name, `
		mkdir -p "/mnt/$2"
		mount -t nfs "$1:/tank/flex/$2" "/mnt/$2"`, guests["box"], c.PVName)
}

// writeShare writes a text as a user of a pod. To sync the whole mount would fail for what another
// file had no room for before.
func (w *world) writeShare(name string, c contract.Request, text string) {
	w.t.Helper()
	mustGuest(w.t, name, `
		setpriv --reuid 1234 --regid 1234 --clear-groups sh -c '
		  rm -f "$1"
		  echo "$2" >"$1"
		  sync "$1"' sh "/mnt/$1/file" "$2"`, c.PVName, text)
}

// mustReadShare fails the test unless the server has this text: the node's memory is not asked.
func (w *world) mustReadShare(name string, c contract.Request, text string) {
	w.t.Helper()
	got := mustGuest(w.t, name, `
		sync
		echo 3 >/proc/sys/vm/drop_caches
		cat "/mnt/$1/file"`, c.PVName)
	if got != text {
		w.t.Fatalf("the file has %q on %s, want %q", got, name, text)
	}
}

// mustBeLimited fails the test unless the node sees a file system of this size, to which no more
// fits. ZFS keeps a limit to less than a mebibyte.
func (w *world) mustBeLimited(c contract.Request, size int64) {
	w.t.Helper()
	var all, used int64
	said := mustGuest(w.t, "node", `
		cd "/mnt/$1"
		if dd if=/dev/urandom of=large bs=1M count="$2" conv=fsync; then exit 1; fi
		df --output=size -B1 . | tail -n 1
		du --block-size=1 -s . | cut -f 1
		rm large`, c.PVName, fmt.Sprint(size/mebi+16))
	if n, err := fmt.Sscan(said, &all, &used); n != 2 {
		w.t.Fatal(err)
	}
	if all < size || all > size+mebi || used > size+mebi || used < size-4*mebi {
		w.t.Errorf("the node has a file system of %d bytes and could write %d, want %d", all, used, size)
	}
}

// A data set that zfs could not export is there, and is no volume.
func TestARealDataSetThatIsNotExportedIsNoVolume(t *testing.T) {
	w, c := newWorld(t, zfsOnARealBox()), claim(1)
	back := func() { mustGuest(t, "box", "[ ! -e /root/exportfs ] || mv /root/exportfs /usr/sbin/exportfs") }
	mustGuest(t, "box", `
		mv /usr/sbin/exportfs /root/exportfs
		printf '%s\n' '#!/bin/sh' '[ $# = 0 ] || exit 1' 'exec /root/exportfs' >/usr/sbin/exportfs
		chmod +x /usr/sbin/exportfs`)
	t.Cleanup(back)
	for range 2 {
		w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, "claim: the storage does not export the volume by NFS")
	}
	back()
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.mustHave(mebi, c)
	w.mustEnd(w.run(contract.Delete, c), 0, "")
	w.mustHaveNothing()
}
