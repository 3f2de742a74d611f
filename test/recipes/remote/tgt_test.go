//go:build recipes

package remote

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/recipes/kube"
)

// tgtd gives the world a real one, in a mount and a network namespace of its own.
func (w *world) tgtd() {
	w.t.Helper()
	for _, program := range []string{"tgtd", "tgt-admin", "iscsi-inq"} {
		if _, err := exec.LookPath(program); err != nil || os.Getuid() != 0 {
			w.t.Skipf("it needs root and %s: %v", program, err) // hack/e2e-long.sh installs it
		}
	}
	w.remove("bin/tgtadm")
	w.remove("bin/tgt-admin")
	must(w.t, os.Mkdir(filepath.Join(w.dir, "box/tgt"), 0o755))
	w.write("box/tgt/targets.conf", "include "+w.dir+"/box/conf.d/*.conf\n")
	cmd := exec.Command("unshare", "--mount", "--net", "sh", "-ec", `
		mount -t tmpfs none /run
		mkdir -p /run/tgtd
		[ -d /etc/tgt ]
		mount --bind "$1" /etc/tgt
		ip link set lo up
		exec tgtd -f`, "tgtd", filepath.Join(w.dir, "box/tgt"))
	must(w.t, cmd.Start())
	w.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	w.write("box/tgtd", fmt.Sprint(cmd.Process.Pid))
	for range 100 {
		if _, code := w.onBox("tgtadm", "--lld", "iscsi", "--mode", "target", "--op", "show"); code == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.t.Fatal("tgtd does not answer")
}

// onBox runs a command where the real tgtd is.
func (w *world) onBox(command ...string) (said string, code int) {
	w.t.Helper()
	pid, err := os.ReadFile(filepath.Join(w.dir, "box/tgtd"))
	must(w.t, err)
	cmd := exec.Command("nsenter", append([]string{"--target", string(pid), "--mount", "--net"}, command...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	out, err := cmd.CombinedOutput()
	return string(out), exitOf(err)
}

// mustLogIn fails the test unless a node can, or cannot, log in with a password.
func (w *world) mustLogIn(c contract.Request, password string, can bool) {
	w.t.Helper()
	said, _ := w.onBox("iscsi-inq", "iscsi://"+c.PVName+"%"+password+"@127.0.0.1/iqn.2026-01.example.box:"+c.PVName+"/1")
	if got := strings.Contains(said, "DIRECT_ACCESS"); got != can || !can && !strings.Contains(said, "Authentication failure") {
		w.t.Errorf("with %.4s… a node logs in: %t\n%s", password, got, said)
	}
}

// tgt-admin changes no login that exists, and deletes none.
func TestARealTgtdHasTheLoginOfTheSecret(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, iscsiTarget()), claim(1)
	w.tgtd()
	password := func() string { return kube.Password(t, w.api.All("secrets")[0]) }
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	first := password()
	w.mustLogIn(c, first, true)
	w.write("etc/secret/chap", "CANARY-another")
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	if password() == first {
		t.Fatal("the Secret has the first password")
	}
	w.canaries = append(w.canaries, first)
	w.mustLogIn(c, password(), true)
	w.mustLogIn(c, first, false)
	c.Size = 6 * mebi
	w.mustEnd(w.run(contract.Expand, c), 0, "")
	w.mustLogIn(c, password(), true)
	w.mustEnd(w.run(contract.Delete, c), 0, "")
	for _, mode := range []string{"target", "account"} {
		if left, code := w.onBox("tgtadm", "--lld", "iscsi", "--mode", mode, "--op", "show"); code != 0 || strings.Contains(left, "pvc-") {
			t.Errorf("tgtd has still, with exit code %d:\n%s", code, left)
		}
	}
	w.mustHaveNothing()
}

// The login of a session is not changed under it: a node would not find its disk again.
func TestLoginOfATargetThatIsInUseStays(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, iscsiTarget()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	iqn := "iqn.2026-01.example.box:" + c.PVName
	w.login(iqn, true)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.write("etc/secret/chap", "CANARY-another")
	w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, "claim: a node is logged in to the volume with an earlier login")
	w.login(iqn, false)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	state(w.dir, "tgt-logins", func(logins *tgtLogins) {
		if got := (*logins)[c.PVName]; got != kube.Password(t, w.api.All("secrets")[0]) {
			t.Errorf("the target has another login than the Secret: %s", got)
		}
	})
}

// xfs mounts a real file system for the volumes.
func (w *world) xfs(size string) {
	w.t.Helper()
	image, at := filepath.Join(w.dir, "xfs"), filepath.Join(w.dir, "box/volumes")
	for _, command := range [][]string{{"truncate", "-s", size, image}, {"mkfs.xfs", "-q", "-m", "reflink=1", image}, {"mount", "-o", "loop", image, at}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			w.t.Skipf("%q: %v: %s", command, err, out)
		}
	}
	w.t.Cleanup(func() { _ = exec.Command("umount", at).Run() })
	w.write("box/reflinks", "real")
}

// fill uses up the room of the volumes.
func (w *world) fillXFS(leave string) {
	w.t.Helper()
	script := `cd "$1" && fallocate -l $(($(df --output=avail -B1 . | tail -n 1) - $2)) filler`
	if out, err := exec.Command("sh", "-c", script, "sh", filepath.Join(w.dir, "box/volumes"), leave).CombinedOutput(); err != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
}

// overwrite writes each block of a volume, as a pod does that has filled it.
func (w *world) overwrite(c contract.Request) {
	w.t.Helper()
	disk := filepath.Join(w.dir, "box/volumes", c.PVName, "disk")
	script := `dd if=/dev/zero of="$1" bs=1M count=$(($(stat -c %s "$1") / 1048576)) conv=notrunc,fsync 2>&1`
	if out, err := exec.Command("sh", "-c", script, "sh", disk).CombinedOutput(); err != nil {
		w.t.Errorf("a write to the volume of %s fails: %v: %s", c.Name, err, out)
	}
}

// On XFS a block of two files has no room of its own: in a full file system writes to the clone, and
// to its source, would fail.
func TestCloneAndSourceOnXFSHaveRoomOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, iscsiTarget())
	w.xfs("400M")
	// A file of this process may have 32 MiB: the limit of box.sh holds for the box that is played.
	source := claim(1, func(c *contract.Request) { c.Size = 24 * mebi })
	clone := claim(2, cloneOf(1), func(c *contract.Request) { c.Size = 30 * mebi })
	w.mustEnd(w.run(contract.Provision, source), 0, "")
	w.overwrite(source)
	w.mustEnd(w.run(contract.Provision, clone), 0, "")
	w.fillXFS("1048576")
	w.overwrite(source)
	w.overwrite(clone)
	if size := w.recipe.volumes(w)[clone.UID]; size != 30*mebi {
		t.Errorf("the clone has %d bytes", size)
	}
	// df is played: the file system itself has no room.
	w.mustEnd(w.run(contract.Provision, claim(3, cloneOf(1), func(c *contract.Request) { c.Size = 24 * mebi })), contract.ExitCapacity, "claim: the storage has no room")
	w.overwrite(source)
}
