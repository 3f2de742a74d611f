//go:build recipes

package remote

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// onCeph returns a world with a real Ceph, or skips the test.
func onCeph(t *testing.T) *world {
	t.Helper()
	if os.Getenv(cephDirectory) == "" {
		t.Skip("there is no Ceph: " + cephDirectory + " is not set. PART=recipes make e2e-long has one")
	}
	return newWorld(t, overCeph())
}

// content returns the sum of an image's first bytes.
func (w *world) content(c contract.Request, size int64) string {
	w.t.Helper()
	all := admin(w.t, "rbd", "export", "--no-progress", w.properties["pool"]+"/"+c.PVName, "-")
	return fmt.Sprintf("%x", sha256.Sum256([]byte(all[:size])))
}

// changesCeph reports whether a call is one of rbd that changes something.
func changesCeph(c call) bool {
	return c.Name == "rbd" && slices.ContainsFunc(c.Arguments, func(word string) bool {
		return slices.Contains([]string{"create", "clone", "protect", "unprotect", "flatten", "resize", "rm", "set"}, word)
	})
}

// A clone has the data of its source, and can outlive it, wherever its run is killed. An undo leaves
// no snapshot of the source.
func TestACephCloneDoesNotDependOnItsSource(t *testing.T) {
	t.Parallel()
	w := onCeph(t)
	source := claim(1)
	w.mustEnd(w.run(contract.Provision, source), 0, "")
	admin(t, "rbd", "bench", "--io-type", "write", "--io-size", "64K", "--io-total", "512K", w.properties["pool"]+"/"+source.PVName)
	want := w.content(source, mebi)
	clone := claim(2, cloneOf(1))
	clone.Size = 6 * mebi
	before := len(w.calls())
	w.mustEnd(w.run(contract.Provision, clone), 0, "")
	unbroken := w.calls()[before:]
	w.mustEnd(w.run(contract.Delete, clone), 0, "")
	for i, call := range unbroken {
		if !changesCeph(call) {
			continue
		}
		i++
		w.killed(len(w.calls())+i, contract.Provision, clone)
		undo := clone
		undo.Undo, undo.Source = true, nil
		w.mustEnd(w.run(contract.Delete, undo), 0, "")
		if left := w.recipe.left(w); len(left) != 1 {
			t.Fatalf("killed after %q, the undo has left %q", call.Arguments, left)
		}
		w.killed(len(w.calls())+i, contract.Provision, clone)
		w.mustEnd(w.run(contract.Provision, clone), 0, "")
		if found := w.content(clone, mebi); found != want {
			t.Fatalf("killed after %q, the clone has other data", call.Arguments)
		}
		if left := w.recipe.left(w); len(left) != 2 {
			t.Fatalf("killed after %q, there are %q", call.Arguments, left)
		}
		w.mustEnd(w.run(contract.Delete, clone), 0, "")
	}
	w.api.Forget()
	w.mustEnd(w.run(contract.Provision, clone), 0, "")
	w.mustEnd(w.run(contract.Provision, claim(2)), contract.ExitBadRequest, "claim: the volume was created from another source")
	w.mustEnd(w.run(contract.Delete, source), 0, "")
	w.mustHave(6*mebi, clone)
	if found := w.content(clone, mebi); found != want {
		t.Error("without its source the clone has other data")
	}
	w.mustEnd(w.run(contract.Provision, claim(3, cloneOf(1))), contract.ExitBadRequest, "claim: the pool cannot clone this source")
	w.mustEnd(w.run(contract.Delete, clone), 0, "")
	w.mustHaveNothing()
}

// What Ceph refuses is said with its cause.
func TestCephSaysWhatItRefuses(t *testing.T) {
	t.Parallel()
	w := onCeph(t)
	before := maps.Clone(w.properties)
	for name, test := range map[string]struct {
		change func()
		code   int
		says   string
	}{
		"another key":    {func() { w.write("etc/secret/userKey", "AQAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAA==") }, contract.ExitNoPerm, "Ceph refuses the user of the Secret"},
		"no key":         {func() { w.remove("etc/secret/userKey") }, contract.ExitConfig, "the Secret lacks the file userKey"},
		"no pool":        {func() { w.properties["pool"] = "none" }, contract.ExitConfig, "Ceph has no pool none"},
		"no monitor":     {func() { w.properties["monitors"] = "127.0.0.1:1" }, contract.ExitTempFail, "Ceph does not answer"},
		"no monitors":    {func() { delete(w.properties, "monitors") }, contract.ExitConfig, "the config lacks the key monitors"},
		"another's pool": {func() { w.properties["pool"] = "volumes" }, contract.ExitNoPerm, "Ceph refuses the user of the Secret"},
	} {
		key, err := os.ReadFile(w.dir + "/etc/secret/userKey")
		must(t, err)
		test.change()
		if e := w.run(contract.Provision, claim(1)); e.code != test.code || !strings.Contains(e.out+e.message, test.says) {
			t.Errorf("%s: exit %d, want %d and %q:\n%s%s", name, e.code, test.code, test.says, e.out, e.message)
		}
		w.properties = maps.Clone(before)
		w.write("etc/secret/userKey", string(key))
	}
	w.mustHaveNothing()
}

// An image that a node has mapped is not deleted.
func TestAMappedCephImageIsKept(t *testing.T) {
	t.Parallel()
	w, c := onCeph(t), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	dir := os.Getenv(cephDirectory)
	user := exec.CommandContext(t.Context(), "rbd", "--conf", dir+"/ceph.conf", "--keyring", dir+"/client.admin.keyring",
		"bench", "--io-type", "write", "--io-size", "4K", "--io-total", "1T", w.properties["pool"]+"/"+c.PVName)
	out, err := user.StdoutPipe()
	must(t, err)
	must(t, user.Start())
	_, err = out.Read(make([]byte, 1)) // it says that it has begun
	must(t, err)
	w.mustEnd(w.run(contract.Delete, c), contract.ExitTempFail, "claim: the image is mapped on a node")
	w.mustHave(mebi, c)
	must(t, user.Process.Kill())
	_ = user.Wait()
}
