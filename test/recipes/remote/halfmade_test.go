//go:build recipes

package remote

import (
	"os"
	"slices"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// mustNotServe fails the test if a claim gets a volume, and unless the run says why not.
func (w *world) mustNotServe(c contract.Request, code int, says string) {
	w.t.Helper()
	w.mustEnd(w.run(contract.Provision, c), code, says)
	if pvs := w.api.All("persistentvolumes"); len(pvs) > 0 {
		w.t.Errorf("%s: there is the PV %v", says, pvs)
	}
	if contract.VerdictOf(code).MadeNothing() { // else no run would undo what is left
		w.mustHaveNothing()
	}
}

// zfs create and zfs mount end with 1 when they have not shared what they have mounted. A later run
// finds the data set.
func TestDataSetThatIsNotSharedIsNoVolume(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overZFS()), claim(1)
	state(w.dir, "zfs", func(pool *zpool) { pool.Unshareable = 2 })
	w.mustNotServe(c, 1, "but not shared")
	w.mustNotServe(c, contract.ExitTempFail, "claim: the storage does not export the volume by NFS")
	w.mustServe(c)
}

// zfs share succeeds when exportfs has failed, and says "already shared" of a box that exports
// nothing.
func TestADataSetThatTheNFSServerDoesNotExportIsNoVolume(t *testing.T) {
	t.Parallel()
	for _, share := range []string{"rw=@192.0.2.0/24", "on"} {
		w, c := newWorld(t, overZFS()), claim(1)
		state(w.dir, "zfs", func(pool *zpool) { pool.ShareNFS, pool.Failing = share, true })
		for range 2 {
			w.mustNotServe(c, contract.ExitTempFail, "claim: the storage does not export the volume by NFS")
		}
		state(w.dir, "zfs", func(pool *zpool) {
			pool.Exported = append(pool.Exported, pool.Children["tank/flex/"+c.PVName]["mountpoint"])
		})
		w.mustServe(c)
	}
}

// The server of Linux keeps the file systems of open files mounted.
func TestDataSetThatANodeUsesIsDeletedLater(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overZFS()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	state(w.dir, "zfs", func(pool *zpool) { pool.Busy = true })
	w.mustEnd(w.run(contract.Delete, c), contract.ExitTempFail, "claim: a node still has files of the volume open")
	w.mustHave(mebi, c)
	state(w.dir, "zfs", func(pool *zpool) { pool.Busy = false })
	w.mustEnd(w.run(contract.Delete, c), 0, "")
	w.mustHaveNothing()
}

func TestParentThatExportsNothingIsMisconfigured(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*zpool){
		"is not exported: set its sharenfs, or correct the key parent": func(pool *zpool) { pool.ShareNFS = "off" },
		"has no mountpoint: set it, or correct the key parent":         func(pool *zpool) { pool.Mountpoint = "legacy" },
	} {
		w := newWorld(t, overZFS())
		state(w.dir, "zfs", change)
		w.mustNotServe(claim(1), contract.ExitConfig, says)
	}
}

// 78 says that nothing was made, and then nothing is undone.
func TestABoxWithoutAProgramHasMadeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overZFS(), edition{"command -v exportfs", "command -v no-such-program"})
	state(w.dir, "zfs", func(pool *zpool) { pool.ShareNFS = "on" })
	w.mustNotServe(claim(1), contract.ExitConfig, "the box has no exportfs: install nfs-kernel-server")
	w = newWorld(t, iscsiTarget(), edition{"command -v xfs_io", "command -v no-such-program"},
		edition{`$(stat -f -c %T "$volumes")`, "xfs"})
	w.mustNotServe(claim(2, cloneOf(1)), contract.ExitConfig, "install xfsprogs")
}

// After a restart rtslib leaves out the volumes without a device, or nothing has restored them at
// all. Saving what is there would be the end of them.
func TestTargetsThatABoxHasNotRestoredAreNotForgotten(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"lio/core", "lio/iscsi"} {
		w := newWorld(t, overLVM())
		for i := range 2 {
			w.mustEnd(w.run(contract.Provision, claim(i+1)), 0, "")
		}
		must(t, os.Rename(w.dir+"/box/"+lost, w.dir+"/box/aside"))
		saved, err := os.ReadFile(w.dir + "/box/rtslib/saveconfig.json")
		must(t, err)
		for verb, c := range map[contract.Verb]contract.Request{contract.Provision: claim(3), contract.Delete: claim(2)} {
			w.mustEnd(w.run(verb, c), contract.ExitTempFail, "claim: the storage has not restored all volumes")
		}
		if left, err := os.ReadFile(w.dir + "/box/rtslib/saveconfig.json"); err != nil || string(left) != string(saved) {
			t.Errorf("without %s it has saved %s, %v", lost, left, err)
		}
		must(t, os.Rename(w.dir+"/box/aside", w.dir+"/box/"+lost))
		w.mustEnd(w.run(contract.Delete, claim(2)), 0, "")
		w.mustHave(mebi, claim(1))
		// What is missing is the claim's own, of a run that was killed.
		must(t, os.RemoveAll(w.dir+"/box/lio"))
		must(t, os.MkdirAll(w.dir+"/box/lio/iscsi", 0o755))
		w.mustEnd(w.run(contract.Provision, claim(1)), 0, "")
		w.mustHave(mebi, claim(1))
	}
}

func TestABoxWithoutWhatTheConfigNamesIsMisconfigured(t *testing.T) {
	t.Parallel()
	for key, r := range map[string]recipe{"parent": overZFS(), "volume-group": overLVM(), "directory": iscsiTarget()} {
		w := newWorld(t, r)
		w.properties[key] = "/none"
		for _, verb := range []contract.Verb{contract.Provision, contract.Expand, contract.Delete, contract.List} {
			w.mustEnd(w.run(verb, claim(1)), contract.ExitConfig, "or correct the key "+key)
		}
	}
}

// A run ends between the limit and the reservation, and a box between a data set and its
// properties.
func TestDataSetThatIsHalfMadeIsFinished(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overZFS()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	of := func() (p map[string]string) {
		state(w.dir, "zfs", func(pool *zpool) { p = pool.Children["tank/flex/"+c.PVName] })
		return p
	}
	complete := of()
	state(w.dir, "zfs", func(pool *zpool) {
		for _, property := range []string{"refquota", "refreservation", "flex:note"} {
			delete(pool.Children["tank/flex/"+c.PVName], property)
		}
	})
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	for _, property := range []string{"refquota", "refreservation", "flex:note"} {
		if got := of()[property]; got != complete[property] {
			t.Errorf("the property %s is %q, want %q", property, got, complete[property])
		}
	}
	c.Size = 6 * mebi
	state(w.dir, "zfs", func(pool *zpool) { pool.Children["tank/flex/"+c.PVName]["refquota"] = "6291456" })
	w.mustEnd(w.run(contract.Expand, c), 0, "")
	if got := of()["refreservation"]; got != "6291456" {
		t.Errorf("%s bytes are reserved", got)
	}
}

// Whether targetcli adds a portal and enables a target is a setting of the box.
func TestTargetThatNoNodeCanUseIsNoVolume(t *testing.T) {
	t.Parallel()
	for setting, says := range map[string]string{"portal": "it has no portal", "enable": "it is not enabled"} {
		w, c := newWorld(t, overLVM()), claim(1)
		w.write("box/targetcli", setting)
		for range 2 {
			w.mustNotServe(c, contract.ExitTempFail, says)
		}
		w.remove("box/targetcli")
		w.mustServe(c)
	}
}

// A backstore of an earlier group has the volume's name, and leads to another disk.
func TestTargetOfAnotherDeviceIsMadeAnew(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overLVM()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.write("box/lio/core/iblock_0/"+c.PVName+"/udev_path", "/dev/old/"+c.PVName+"\n")
	w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, "LUN 1 is another device")
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.mustHave(mebi, c)
}

// A pool that is not active does not say what is used of it, and some boxes have a decimal comma.
func TestThinPoolsAreServedUntilTheyAreFull(t *testing.T) {
	t.Parallel()
	for used, code := range map[string]int{
		"": 0, "12,33": 0, "89.99 12.00": 0, "100.00": contract.ExitCapacity, "90,00": contract.ExitCapacity, "12.33 90.01": contract.ExitCapacity,
	} {
		w := newWorld(t, overLVM())
		state(w.dir, "lvm", func(group *lvm) { group.Used = used })
		w.mustEnd(w.run(contract.Provision, claim(1)), code, "")
	}
}

func TestGroupWhoseMetadataAreaIsFullIsNoCapacity(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overLVM()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	state(w.dir, "lvm", func(group *lvm) { group.Full = true })
	for _, other := range []contract.Request{claim(2), claim(3, cloneOf(1))} {
		w.mustEnd(w.run(contract.Provision, other), contract.ExitCapacity, "claim: the metadata area of the storage's volume group is full (lvcreate ends with 5)")
	}
	w.mustHave(mebi, c)
}

// A box that was restarted may not have activated a volume.
func TestLogicalVolumeWithoutADeviceIsActivated(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overLVM()), claim(1)
	w.write("box/no-dbus", "")
	w.mustNotServe(c, contract.ExitTempFail, "claim: the storage's targetcli cannot connect to D-Bus: its administrator must install and start dbus\n")
	w.mustNotServe(c, contract.ExitTempFail, "g-io-error-quark: Could not connect") // for the log alone
	w.remove("box/no-dbus")
	state(w.dir, "lvm", func(group *lvm) {
		v := group.Volumes[c.PVName]
		v.Inactive = true
		group.Volumes[c.PVName] = v
	})
	w.mustServe(c)
}

// LIO would make another name of it, or refuse it for ever.
func TestNameOfATargetThatIsTakenOtherwiseIsMisconfigured(t *testing.T) {
	t.Parallel()
	for _, r := range []recipe{overLVM(), iscsiTarget()} {
		names := []string{"iqn.2026-11.Example.box", "iqn.2026-11.my_box.example", "box"}
		if r.name == "lvm" {
			names = append(names, "iqn.2026-11.box")
		}
		for _, name := range names {
			w := newWorld(t, r)
			w.properties["iqn"] = name
			w.mustNotServe(claim(1), contract.ExitConfig, "the key iqn")
			w.mustEnd(w.run(contract.Delete, claim(1)), 0, "") // of what tgt took
			if slices.ContainsFunc(w.calls(), func(c call) bool { return c.Name == "lvcreate" || c.Name == "fallocate" }) {
				t.Error("a volume was made")
			}
		}
	}
}
