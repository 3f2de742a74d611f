//go:build boxes

package remote

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const iqnOfLVM = "iqn.2026-01.example.lvm"

// lvmOnARealBox is the recipe lvm on the guest, which has a group vg with a thin pool flex, as
// docs/recipes/lvm.md makes them.
func lvmOnARealBox() recipe {
	r := overLVM()
	r.onBox = true
	r.source = iscsiSource(iqnOfLVM, guests["box"])
	r.setUp = func(w *world) {
		onRealBox(w)
		w.properties["volume-group"], w.properties["pool"], w.properties["iqn"] = "vg", "flex", iqnOfLVM
		mustGuest(w.t, "box", `
			if ! vgs vg >/dev/null 2>&1; then
			  vgcreate --metadatasize 64m vg /dev/vdb
			  lvcreate --type thin-pool --size 1G --name flex vg
			fi
			systemctl is-active -q rtslib-fb-targetctl || systemctl enable --now rtslib-fb-targetctl`)
	}
	r.volumes = func(w *world) map[string]int64 {
		found := map[string]int64{}
		for line := range strings.Lines(mustGuest(w.t, "box", `
			lvs --noheadings --nosuffix --units b -o lv_name,lv_size vg | grep pvc- | while read -r name size; do
			  [ ! -d "/sys/kernel/config/target/iscsi/$1:$name/tpgt_1/lun/lun_1" ] || echo "$name" "$size"
			done`, iqnOfLVM)) {
			var name string
			var size int64
			if n, err := fmt.Sscan(line, &name, &size); n != 2 {
				w.t.Fatal(err)
			}
			found[strings.TrimPrefix(name, "pvc-")] = size
		}
		return found
	}
	r.left = func(w *world) []string {
		return strings.Fields(mustGuest(w.t, "box", `
			lvs --noheadings -o lv_name vg | grep pvc- || true
			cd /sys/kernel/config/target
			ls -d iscsi/iqn* core/*/pvc-* 2>/dev/null || true
			grep -o 'pvc-[0-9a-f-]*' /etc/rtslib-fb-target/saveconfig.json | sort -u || true`))
	}
	return r
}

// TestARealBoxWithLVM is the recipe on a thin pool, LIO and the initiator of Debian's kernel. Its
// steps are the cells of a table, and each needs the one before.
func TestARealBoxWithLVM(t *testing.T) {
	w := newWorld(t, lvmOnARealBox())
	c := claim(1, func(c *contract.Request) { c.Size = 64 * mebi })
	clone := claim(2, cloneOf(1), func(c *contract.Request) { c.Size = 128 * mebi })
	var provisioned, deleted []call
	w.step("provisioned", func() {
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		provisioned = w.calls()
		w.mustHave(64*mebi, c)
		w.mustHavePV(c)
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.mustEnd(w.run(contract.List, claim(9)), 0, `{"lines":1}`)
	})
	w.mustServeANode(c)
	w.step("grown", func() {
		c.Size = 128 * mebi
		w.mustEnd(w.run(contract.Expand, c), 0, fmt.Sprintf(`"capacity":%d}`, 128*mebi))
		if device, files := w.diskOf(c).grow(); device != 128*mebi || files < 100*mebi {
			w.t.Errorf("the node has a disk of %d bytes, and %d bytes for files", device, files)
		}
		w.diskOf(c).mustRead("of the first claim")
		w.mustListWhatIsUsed(128 * mebi)
	})
	w.step("cloned", func() {
		small := clone
		small.Size = 64 * mebi
		w.mustEnd(w.run(contract.Provision, small), contract.ExitBadRequest, "claim: a clone cannot be smaller than its source")
		w.mustEnd(w.run(contract.Provision, clone), 0, "")
		d := w.diskOf(clone)
		d.mustLogIn()
		d.mount()
		d.mustRead("of the first claim")
		d.write("of the clone")
		w.diskOf(c).mustRead("of the first claim")
		d.leave()
	})
	w.step("there after a reboot", func() {
		w.mustSurviveReboot(c, clone)
		w.mustSayWhatIsNotRestored(c, clone)
	})
	w.diskOf(c).leave()
	w.mustServeAnother(c, "after the reboot")
	w.step("deleted", func() {
		before := len(w.calls())
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		deleted = w.calls()[before:]
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		w.mustHave(128*mebi, clone)
		w.mustEnd(w.run(contract.Delete, clone), 0, "")
		w.mustHaveNothing()
	})
	w.step("repeated after a kill", func() { w.mustRepeatLVM(provisioned, deleted) })
	if said := w.said.String(); strings.Contains(said, "leaked") {
		t.Errorf("LVM has inherited a file:\n%s", said)
	}
}

// mustListWhatIsUsed fails the test unless the one volume that is listed uses some of its size, as the
// thin pool says.
func (w *world) mustListWhatIsUsed(size int64) {
	w.t.Helper()
	var listed struct{ Used int64 }
	e := w.run(contract.List, claim(9))
	if err := json.Unmarshal([]byte(e.out), &listed); err != nil || listed.Used <= 0 || listed.Used > size {
		w.t.Errorf("the list says %s: %v", e.out, err)
	}
}

// mustSurviveReboot starts the box anew while a node is logged in. What the box has restored a
// claim does not notice. The node finds its disk again.
func (w *world) mustSurviveReboot(c, clone contract.Request) {
	w.t.Helper()
	reboot(w.t, "box", "systemctl reboot")
	mustGuest(w.t, "box", `
		lvs -a -o +lv_active,segtype vg
		ls /sys/kernel/config/target/iscsi || true # tgt has no part of the kernel
		systemctl --failed
		journalctl -b -u rtslib-fb-targetctl -u tgt`)
	e, said := w.again(contract.Provision, c)
	w.mustEnd(e, 0, "")
	for _, message := range said {
		if !strings.Contains(message, "has not restored all volumes") {
			w.t.Errorf("after the reboot the claim has %q", message)
		}
	}
	w.mustHave(128*mebi, c, clone)
	w.diskOf(c).mustRead("of the first claim")
	w.diskOf(c).write("after the reboot")
	w.diskOf(c).mustRead("after the reboot")
}

// mustSayWhatIsNotRestored starts the box anew without its group. A claim says so, until the
// administrator has done what docs/recipes/lvm.md says.
func (w *world) mustSayWhatIsNotRestored(c, clone contract.Request) {
	w.t.Helper()
	mustGuest(w.t, "box", "vgchange --setautoactivation n vg")
	reboot(w.t, "box", "systemctl reboot")
	w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, "claim: the storage has not restored all volumes")
	w.mustEnd(w.run(contract.Delete, clone), contract.ExitTempFail, "claim: the storage has not restored all volumes")
	mustGuest(w.t, "box", `
		vgchange --setautoactivation y vg
		vgchange -ay vg
		targetctl restore`)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.mustHave(128*mebi, c, clone)
	w.diskOf(c).mustRead("after the reboot")
}

// mustRepeatLVM kills runs at five points of a provision, and at five of a delete.
func (w *world) mustRepeatLVM(provisioned, deleted []call) {
	w.t.Helper()
	w.api.Forget() // the PVs of the deleted volumes
	c := claim(1, func(c *contract.Request) { c.Size = 64 * mebi })
	for i, at := range [][2]string{{"lvcreate", "all"}, {"targetcli", "1"}, {"targetcli", "3"}, {"targetcli", "all"}, {"flex", "secret"}} {
		if at[0] == "flex" {
			w.mustDieAfter(contract.Provision, c, at[0], at[1], provisioned)
		} else {
			w.mustDie(contract.Provision, c, at[0], at[1])
		}
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.mustHave(64*mebi, c)
		w.mustHavePV(c)
		if i == 0 { // what a run has made that was killed serves a node
			w.diskOf(c).use("after a kill")
			w.diskOf(c).leave()
		}
		switch i {
		case 0:
			w.mustDie(contract.Delete, c, "targetcli", "1")
		case 1:
			w.mustDie(contract.Delete, c, "targetcli", "2")
		case 2:
			w.mustDie(contract.Delete, c, "targetcli", "all")
		case 3:
			w.mustDie(contract.Delete, c, "lvremove", "all")
		case 4: // the answer is lost
			w.mustDieAfter(contract.Delete, c, "ssh", "", deleted)
		}
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		w.api.Forget()
		w.mustHaveNothing()
	}
}

// mustServeHere runs each verb for a claim.
func (w *world) mustServeHere() {
	w.t.Helper()
	c := claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.mustHave(mebi, c)
	w.mustEnd(w.run(contract.List, claim(9)), 0, `{"lines":1}`)
	c.Size = 6 * mebi
	w.mustEnd(w.run(contract.Expand, c), 0, "")
	w.mustHave(6*mebi, c)
	w.mustEnd(w.run(contract.Delete, c), 0, "")
	w.api.Forget()
	w.mustHaveNothing()
}

// loginShell makes a shell root's own on the box, for as long as the test.
func loginShell(t *testing.T, shell string) {
	t.Helper()
	mustGuest(t, "box", `usermod --shell "$(command -v "$1")" root`, shell)
	t.Cleanup(func() { mustGuest(t, "box", "usermod --shell /bin/bash root") })
}

func TestARealBoxServesWithAnyLoginShell(t *testing.T) {
	w := newWorld(t, lvmOnARealBox())
	for _, shell := range []string{"dash", "zsh"} { // the others have bash
		w.step(shell, func() {
			loginShell(w.t, shell)
			w.mustServeHere()
		})
	}
}

// sshd gives a session the language of the box, and LVM prints a decimal comma then.
func TestARealBoxServesInAnyLanguage(t *testing.T) {
	w := newWorld(t, lvmOnARealBox())
	mustGuest(t, "box", `
		cp /etc/default/locale /run/locale
		echo LANG=de_DE.UTF-8 >/etc/default/locale`)
	t.Cleanup(func() { mustGuest(t, "box", "cp /run/locale /etc/default/locale") })
	said := mustGuest(t, "box", `
		unset LC_ALL
		lvs --noheadings -o data_percent vg/flex`)
	if !strings.Contains(said, ",") {
		t.Fatalf("LVM prints %q: the session has not the box's language", said)
	}
	w.mustServeHere()
}

// A pool that is not active does not say what is used of it.
func TestARealPoolThatIsNotActiveServes(t *testing.T) {
	w := newWorld(t, lvmOnARealBox())
	mustGuest(t, "box", "lvchange --activate n vg/flex")
	w.mustServeHere()
}

// Such a target is there, and no node can log in to it.
func TestARealTargetThatNoNodeCanUseIsNoVolume(t *testing.T) {
	w, c := newWorld(t, lvmOnARealBox()), claim(1)
	set := func(setting, value string) {
		mustGuest(t, "box", "echo set global $1=$2 | targetcli", setting, value)
	}
	for setting, says := range map[string]string{"auto_add_default_portal": "it has no portal", "auto_enable_tpgt": "it is not enabled"} {
		set(setting, "false")
		w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, says)
		set(setting, "true")
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.diskOf(c).use("at last")
		w.diskOf(c).leave()
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		w.api.Forget()
	}
	w.mustHaveNothing()
}

// targetcli needs D-Bus. Without its socket no program connects to it.
func TestARealBoxNamesAMissingDBus(t *testing.T) {
	w, c := newWorld(t, lvmOnARealBox()), claim(1)
	mustGuest(t, "box", "mv /run/dbus/system_bus_socket /run/dbus/away")
	t.Cleanup(func() { _, _ = guest(t, "box", "mv /run/dbus/away /run/dbus/system_bus_socket") })
	w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, "claim: the storage's targetcli cannot connect to D-Bus")
	mustGuest(t, "box", "mv /run/dbus/away /run/dbus/system_bus_socket")
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.mustEnd(w.run(contract.Delete, c), 0, "")
	w.mustHaveNothing()
}

// LIO makes another name of it, or refuses it.
func TestARealBoxIsNotAskedForABadName(t *testing.T) {
	w, c := newWorld(t, lvmOnARealBox()), claim(1)
	for _, iqn := range []string{"iqn.2026-01.example.Box", "iqn.2026-01.example.a_b"} {
		w.properties["iqn"] = iqn
		w.mustEnd(w.run(contract.Provision, c), contract.ExitConfig, "the key iqn may have only")
	}
	w.properties["iqn"] = iqnOfLVM
	w.mustHaveNothing()
}
