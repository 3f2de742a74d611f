//go:build recipes

package remote

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/recipes/kube"
)

func (w *world) remove(name string) {
	w.t.Helper()
	must(w.t, os.Remove(filepath.Join(w.dir, name)))
}

func forEachBox(t *testing.T, test func(subtest)) {
	t.Helper()
	forEach(t, func(of subtest) {
		if of.recipe.overSSH {
			test(of)
		}
	})
}

func TestFailuresOfSSHAreVerdicts(t *testing.T) {
	forEachBox(t, func(of subtest) {
		t, r := of.t, of.recipe
		for mode, want := range map[string]struct {
			code int
			says string
		}{
			"denied":      {contract.ExitNoPerm, "the box refuses the key"},
			"another box": {contract.ExitConfig, "the host key of the box"},
			"down":        {contract.ExitTempFail, "claim: the storage does not answer"},
		} {
			w := newWorld(t, r)
			w.write("box/ssh", mode)
			for _, verb := range []contract.Verb{contract.Provision, contract.Delete, contract.Expand, contract.List} {
				w.mustEnd(w.run(verb, claim(1)), want.code, want.says)
			}
			w.mustHaveNothing()
		}
	})
}

// The connection may end when the work is done.
func TestAnswerOfABoxIsLost(t *testing.T) {
	forEachBox(t, func(of subtest) {
		t, r := of.t, of.recipe
		w, c := newWorld(t, r), claim(1)
		for _, verb := range []contract.Verb{contract.Provision, contract.Delete} {
			w.write("box/ssh", "lost")
			w.mustEnd(w.run(verb, c), contract.ExitTempFail, "claim: the storage does not answer")
			w.remove("box/ssh")
			w.mustEnd(w.run(verb, c), 0, "")
			if verb == contract.Provision {
				w.mustHave(mebi, c)
				w.mustHavePV(c)
			}
		}
		w.mustHaveNothing()
	})
}

// A node whose disk is full keeps no answer: what the box has done is not known.
func TestAnswerOfABoxThatCannotBeWrittenIsTriedAgain(t *testing.T) {
	forEachBox(t, func(of subtest) {
		w, c := newWorld(of.t, of.recipe, edition{`>"$work/out"`, `>/dev/full`}), claim(1)
		for _, verb := range []contract.Verb{contract.Provision, contract.Expand, contract.Delete, contract.List} {
			w.mustEnd(w.run(verb, c), contract.ExitTempFail, "or the disk of the provisioner's node is full")
			w.await("the box goes on", func() bool { return len(w.processes("")) == 0 })
		}
	})
}

// A config can name nothing that a shell of the box would interpret.
func TestWordsForABoxArePlain(t *testing.T) {
	forEachBox(t, func(of subtest) {
		t, r := of.t, of.recipe
		w := newWorld(t, r)
		good := maps.Clone(w.properties)
		for name := range good {
			if name == "box" || name == "portal" || name == "nfs-server" { // no words of a shell there
				continue
			}
			for _, bad := range []string{"x y", "x;true", "$(true)", "`true`", "x\ny", "x'y", `x"y`, "x*", "~", "x&y", "x|y", "x>y", "x\\y", "(x)", "{x}", "#x", "!x"} {
				w.properties = maps.Clone(good)
				w.properties[name] = bad
				w.mustEnd(w.run(contract.Provision, claim(1)), contract.ExitConfig, "may have only letters")
			}
		}
		for _, c := range w.calls() {
			if c.Name == "ssh" {
				t.Errorf("the box was asked: %q", c.Arguments)
			}
		}
	})
}

// login makes a node log in to a target, or out.
func (w *world) login(iqn string, in bool) {
	w.t.Helper()
	state(w.dir, "tgt", func(all *tgtTargets) {
		target := (*all)[iqn]
		target.InUse = in
		(*all)[iqn] = target
	})
}

// tgt-admin succeeds and does nothing while a node is logged in.
func TestVolumeOfTgtThatIsInUseStays(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, iscsiTarget()), claim(1)
	iqn := "iqn.2026-01.example.box:" + c.PVName
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.mustEnd(w.run(contract.Provision, claim(2)), 0, "")
	w.login(iqn, true)
	w.mustEnd(w.run(contract.Delete, c), contract.ExitTempFail, "claim: a node is still logged in")
	w.mustHave(mebi, c, claim(2))
	c.Size = 2 * mebi
	w.mustEnd(w.run(contract.Expand, c), contract.ExitTempFail, "claim: the volume is in use, and can grow when it is not")
	w.mustHave(mebi, claim(1), claim(2))
	// tgt-admin is not run if it would do nothing, and the node logs out then.
	state(w.dir, "tgt", func(all *tgtTargets) {
		target := (*all)[iqn]
		target.Leaves = true
		(*all)[iqn] = target
	})
	w.mustEnd(w.run(contract.Expand, c), contract.ExitTempFail, "claim: the volume is in use, and can grow when it is not")
	w.login(iqn, false)
	w.mustEnd(w.run(contract.Expand, c), 0, "")
	if size := w.recipe.volumes(w)[c.UID]; size != 2*mebi {
		t.Errorf("it has %d bytes", size)
	}
	w.mustEnd(w.run(contract.Delete, c), 0, "")
	w.mustHave(mebi, claim(2))
}

// What tgtd does not say is not known: a node may be logged in.
func TestVolumeStaysWhileTgtdDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, iscsiTarget()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.write("box/no-tgtd", "")
	for _, verb := range []contract.Verb{contract.Provision, contract.Expand, contract.Delete} {
		w.mustEnd(w.run(verb, c), contract.ExitTempFail, "claim: the storage's tgtd does not answer")
	}
	w.remove("box/no-tgtd")
	w.mustHave(mebi, c)
	w.mustEnd(w.run(contract.Delete, c), 0, "")
	w.mustHaveNothing()
}

// Only the box's root can read the login of a target, and the volume.
func TestFilesOfABoxAreRootsOwn(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, iscsiTarget()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	files := glob(w, "box/volumes/pvc-*/*", "box/conf.d/*")
	if len(files) != 4 {
		t.Errorf("the files are %q", files)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", file, info.Mode())
		}
	}
	config, err := os.ReadFile(filepath.Join(w.dir, "box/conf.d", c.PVName+".conf"))
	must(t, err)
	if want := "incominguser " + c.PVName + " " + kube.Password(t, w.api.All("secrets")[0]) + "\n"; !strings.Contains(string(config), want) {
		t.Errorf("the target has another login than the Secret:\n%s", config)
	}
}

// A user of the box who can open the file of the lock could hold it for ever.
func TestLockOfABoxIsRootsOwn(t *testing.T) {
	t.Parallel()
	for file, r := range map[string]recipe{"box/flex-lvm": overLVM(), "box/flex-zfs": overZFS()} {
		w := newWorld(t, r)
		w.mustEnd(w.run(contract.Provision, claim(1)), 0, "")
		info, err := os.Stat(filepath.Join(w.dir, file))
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("the mode of %s is %v", file, info.Mode())
		}
	}
}

func TestBoxWithoutItsDirectoryIsMisconfigured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, iscsiTarget())
	w.remove("box/volumes")
	for _, verb := range []contract.Verb{contract.Provision, contract.Delete, contract.List} {
		w.mustEnd(w.run(verb, claim(1)), contract.ExitConfig, "create or mount it")
	}
}

func TestGroupWithoutItsPoolIsMisconfigured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, overLVM())
	state(w.dir, "lvm", func(group *lvm) { group.NoPool = true })
	w.mustEnd(w.run(contract.Provision, claim(1)), contract.ExitConfig, "is not a thin pool")
	w.mustHaveNothing()
}

func TestLogicalVolumeInUseStays(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overLVM()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	sessions := "box/lio/iscsi/iqn.2026-01.example.lvm:" + c.PVName + "/tpgt_1/dynamic_sessions"
	w.write(sessions, "iqn.2010-11.node1\n")
	w.mustEnd(w.run(contract.Delete, c), contract.ExitTempFail, "claim: a node is still logged in")
	w.mustHave(mebi, c)
}

// zfs create fails when it has created what it cannot mount.
func TestDataSetThatIsNotMountedIsNoVolume(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overZFS()), claim(1)
	state(w.dir, "zfs", func(pool *zpool) { pool.Unmountable = 2 })
	for range 2 {
		if e := w.run(contract.Provision, c); contract.VerdictOf(e.code) != contract.TryAgain || len(w.api.All("persistentvolumes")) > 0 {
			t.Errorf("exit %d: %s", e.code, e.out)
		}
	}
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	state(w.dir, "zfs", func(pool *zpool) {
		if mounted := pool.Children["tank/flex/"+c.PVName]["mounted"]; mounted != "yes" {
			t.Errorf("it is mounted: %q", mounted)
		}
	})
}

// A disk consists of whole sectors: the rest of a file is not in it.
func TestDiskHasAtLeastTheSizeOfItsClaim(t *testing.T) {
	t.Parallel()
	for _, r := range []recipe{iscsiTarget(), overLVM()} {
		w, c := newWorld(t, r), claim(1)
		c.Size = mebi + 100
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		for range 2 {
			if size := w.recipe.volumes(w)[c.UID] / 512 * 512; size < c.Size {
				t.Errorf("%s: a disk for %d bytes has %d", r.name, c.Size, size)
			}
			c.Size = 6*mebi + 100
			w.mustEnd(w.run(contract.Expand, c), 0, "")
		}
	}
}

// A run whose connection has ended may still be at work on the box, for as long as a program there
// hangs.
func TestBoxThatIsBusyIsTriedAgain(t *testing.T) {
	t.Parallel()
	for file, r := range map[string]recipe{"box/volumes/.lock": iscsiTarget(), "box/flex-lvm": overLVM(), "box/flex-zfs": overZFS()} {
		w, c := newWorld(t, r, edition{"flock -w 60 9", "flock -w 1 9"}), claim(1)
		for _, verb := range []contract.Verb{contract.Provision, contract.Expand, contract.Delete} {
			must(t, locked(filepath.Join(w.dir, file), func(*os.File) error {
				w.mustEnd(w.run(verb, c), contract.ExitTempFail, "claim: another run has been at work on the storage")
				return nil
			}))
			w.mustEnd(w.run(verb, c), 0, "")
		}
	}
}
