//go:build recipes

package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The login shell is the box's. zsh knows no function end, and csh no program of sh at all.
func TestAnyLoginShellOfABoxServes(t *testing.T) {
	forEachBox(t, func(of subtest) {
		for _, shell := range []string{"dash", "bash", "zsh", "tcsh"} {
			of.t.Run(shell, func(t *testing.T) {
				t.Parallel()
				path, err := exec.LookPath(shell)
				if err != nil {
					t.Skip(err) // hack/e2e-long.sh installs all of them
				}
				w, c := newWorld(t, of.recipe), claim(1)
				w.write("box/shell", path)
				w.mustServe(c)
			})
		}
	})
}

// mustServe runs each verb for a claim.
func (w *world) mustServe(c contract.Request) {
	w.t.Helper()
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.mustHave(mebi, c)
	w.mustHavePV(c)
	w.mustEnd(w.run(contract.List, claim(9)), 0, `{"lines":1}`)
	c.Size = 6 * mebi
	w.mustEnd(w.run(contract.Expand, c), 0, "")
	w.mustHave(6*mebi, c)
	w.mustEnd(w.run(contract.Delete, c), 0, "")
	w.mustHaveNothing()
}

// shell makes a script the login shell of the box.
func (w *world) shell(script string) {
	w.t.Helper()
	w.write("box/login", "#!/bin/sh\n"+script)
	must(w.t, os.Chmod(filepath.Join(w.dir, "box/login"), 0o700))
	w.write("box/shell", filepath.Join(w.dir, "box/login"))
}

// A login shell reads files when it starts, and they may print.
func TestGreetingOfABoxIsNotItsAnswer(t *testing.T) {
	forEachBox(t, func(of subtest) {
		w := newWorld(of.t, of.recipe)
		w.shell("printf 'Welcome to this box'\nexec sh \"$@\"\n")
		w.mustServe(claim(1))
	})
}

// A box that has run something else has done nothing, whatever its exit code is.
func TestABoxThatRunsSomethingElseHasNotDeleted(t *testing.T) {
	forEachBox(t, func(of subtest) {
		w, c := newWorld(of.t, of.recipe), claim(1)
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		must(of.t, os.Mkdir(w.dir+"/only-sh", 0o755))
		must(of.t, os.Symlink("/bin/sh", w.dir+"/only-sh/sh"))
		for name, script := range map[string]string{
			"a forced command": "echo only backups are made here\n",
			"no login":         "echo This account is currently not available.\nexit 1\n",
			"no base64":        "PATH=" + w.dir + "/only-sh exec /bin/sh \"$@\" 2>/dev/null\n",
		} {
			w.shell(script)
			for _, verb := range []contract.Verb{contract.Provision, contract.Expand, contract.Delete, contract.List} {
				e := w.run(verb, c)
				w.mustEnd(e, contract.ExitConfig, "the box has not run the provisioner's program")
				of.t.Logf("%s: %s", name, e.out)
			}
		}
		w.remove("box/shell")
		w.mustHave(mebi, c)
		w.mustEnd(w.run(contract.Delete, c), 0, "")
		w.mustHaveNothing()
	})
}
