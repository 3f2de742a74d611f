//go:build boxes

package remote

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const iqnOfTgt = "iqn.2026-01.example.box"

// tgtOnARealBox is the recipe iscsi-target on the guest, whose volumes are on XFS, which has
// reflinks. tgt and LIO have the same port: one of them runs.
func tgtOnARealBox(t *testing.T) recipe {
	t.Helper()
	r := iscsiTarget()
	r.onBox = true
	r.source = iscsiSource(iqnOfTgt, guests["box"])
	r.setUp = func(w *world) {
		onRealBox(w)
		w.properties["directory"], w.properties["iqn"] = "/srv/volumes/flex", iqnOfTgt
		mustGuest(w.t, "box", `
			vgs vg >/dev/null 2>&1 || vgcreate --metadatasize 64m vg /dev/vdb
			if ! lvs vg/files >/dev/null 2>&1; then
			  lvcreate --yes --size 1G --name files vg
			  mkfs.xfs -q /dev/vg/files
			  mkdir -p /srv/volumes
			  echo '/dev/vg/files /srv/volumes xfs x-systemd.device-timeout=600 0 0' >>/etc/fstab
			  systemctl daemon-reload
			  mount /srv/volumes
			  install -d -m 0700 /srv/volumes/flex
			fi
			systemctl disable --now rtslib-fb-targetctl 2>/dev/null || true
			systemctl is-active -q tgt || systemctl enable --now tgt`)
	}
	t.Cleanup(func() { mustGuest(t, "box", "systemctl disable --now tgt") })
	r.volumes = func(w *world) map[string]int64 {
		found := map[string]int64{}
		for line := range strings.Lines(mustGuest(w.t, "box", `
			tgtadm --lld iscsi --mode target --op show | sed -n 's/.*store path: \(.*pvc-.*\)/\1/p' |
			  while read -r disk; do echo "$disk" "$(stat -c %s "$disk")"; done`)) {
			var disk string
			var size int64
			if n, err := fmt.Sscan(line, &disk, &size); n != 2 {
				w.t.Fatal(err)
			}
			found[strings.TrimSuffix(strings.TrimPrefix(disk, "/srv/volumes/flex/pvc-"), "/disk")] = size
		}
		return found
	}
	r.left = func(w *world) []string {
		return strings.Fields(mustGuest(w.t, "box", `
			ls /srv/volumes/flex /etc/tgt/conf.d | grep pvc- || true
			for mode in target account; do
			  tgtadm --lld iscsi --mode "$mode" --op show | grep -o 'pvc-[0-9a-f-]*' || true
			done`))
	}
	return r
}

// TestARealBoxWithTgt is the recipe on a real tgtd, XFS and the initiator of Debian's kernel. Its
// steps are the cells of a table, and each needs the one before.
func TestARealBoxWithTgt(t *testing.T) {
	w := newWorld(t, tgtOnARealBox(t))
	c := claim(1, func(c *contract.Request) { c.Size = 64 * mebi })
	clone := claim(2, cloneOf(1), func(c *contract.Request) { c.Size = 128 * mebi })
	w.step("provisioned", func() {
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.mustHave(64*mebi, c)
		w.mustHavePV(c)
		w.mustEnd(w.run(contract.List, claim(9)), 0, `{"lines":1}`)
	})
	w.mustServeANode(c)
	w.step("grown", func() {
		c.Size = 128 * mebi
		w.mustEnd(w.run(contract.Expand, c), contract.ExitTempFail, "claim: the volume is in use, and can grow when it is not")
		w.diskOf(c).leave()
		w.mustEnd(w.run(contract.Expand, c), 0, fmt.Sprintf(`"capacity":%d}`, 128*mebi))
		w.diskOf(c).mustLogIn()
		w.diskOf(c).mount()
		if device, files := w.diskOf(c).grow(); device != 128*mebi || files < 100*mebi {
			w.t.Errorf("the node has a disk of %d bytes, and %d bytes for files", device, files)
		}
		w.diskOf(c).mustRead("of the first claim")
	})
	w.step("cloned", func() { w.mustCloneOnXFS(clone) })
	w.step("there after a reboot", func() { w.mustSurviveReboot(c, clone) })
	w.step("with a new login", func() { w.mustChangeTheLogin(c) })
	w.mustServeAnother(c, "after the reboot")
	w.step("deleted", func() {
		for range 2 {
			w.mustEnd(w.run(contract.Delete, c), 0, "")
		}
		w.mustHave(128*mebi, clone)
		w.mustEnd(w.run(contract.Delete, clone), 0, "")
		w.mustHaveNothing()
	})
	w.step("repeated after a kill", func() {
		w.api.Forget()
		c := claim(1)
		w.mustDie(contract.Provision, c, "fallocate", "all")
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.diskOf(c).use("after a kill")
		w.diskOf(c).leave()
		w.mustDie(contract.Delete, c, "tgt-admin", "all")
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		w.mustHaveNothing()
	})
}

// mustCloneOnXFS makes a clone while a node writes to its source. In a full file system each of
// their blocks can be written.
func (w *world) mustCloneOnXFS(clone contract.Request) {
	w.t.Helper()
	mustGuest(w.t, "node", `dd if=/dev/zero of="/mnt/$1/large" bs=1M count=40 conv=fsync`, clone.Source.PVName)
	w.mustEnd(w.run(contract.Provision, clone), 0, "")
	d := w.diskOf(clone)
	d.mustLogIn()
	d.mount()
	d.mustRead("of the first claim")
	mustGuest(w.t, "box", `
		cd /srv/volumes
		fallocate -l $(($(df --output=avail -B1 . | tail -n 1) - 1048576)) filler`)
	mustGuest(w.t, "node", `
		for name; do
		  dd if=/dev/urandom of="/mnt/$name/large" bs=1M count=40 conv=notrunc,fsync
		done`, clone.Source.PVName, clone.PVName)
	w.mustEnd(w.run(contract.Provision, claim(3)), contract.ExitCapacity, "claim: the storage has no room")
	w.mustEnd(w.run(contract.Delete, claim(3)), 0, "") // of what the refused run has left
	mustGuest(w.t, "box", "rm /srv/volumes/filler")
	d.leave()
}

// mustChangeTheLogin changes the Secret's chap, and repeats the claim's run: no login changes under
// a node, and afterwards only the new one is taken.
func (w *world) mustChangeTheLogin(c contract.Request) {
	w.t.Helper()
	before := w.diskOf(c)
	w.canaries = append(w.canaries, before.password)
	w.write("etc/secret/chap", "CANARY-another")
	w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, "claim: a node is logged in to the volume with an earlier login")
	before.leave()
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.diskOf(c).mustBeRefused(before.password)
	w.diskOf(c).mustLogIn()
	w.diskOf(c).mount()
	w.diskOf(c).mustRead("after the reboot")
	w.diskOf(c).leave()
}
