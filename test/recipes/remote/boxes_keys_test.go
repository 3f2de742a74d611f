//go:build boxes

package remote

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// logsInBy gives the recipe a key of its own, with these options in the authorized_keys of the box.
func (w *world) logsInBy(options string) {
	w.t.Helper()
	key := filepath.Join(w.t.TempDir(), "key")
	must(w.t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "flex-test", "-f", key).Run())
	private, err := os.ReadFile(key)
	must(w.t, err)
	public, err := os.ReadFile(key + ".pub")
	must(w.t, err)
	w.write("etc/secret/key", string(private))
	w.canaries = append(w.canaries, strings.Split(string(private), "\n")[1])
	const file = "/root/.ssh/authorized_keys"
	w.t.Cleanup(func() { mustGuest(w.t, "box", "sed -i '/ flex-test$/d' "+file) })
	mustGuest(w.t, "box", `printf "%s %s\n" "$1" "$2" >>`+file, options, strings.TrimSpace(string(public)))
}

// docs/recipes/iscsi-target.md writes the key so.
func TestARealBoxServesARestrictedKey(t *testing.T) {
	w := newWorld(t, lvmOnARealBox())
	w.logsInBy("restrict")
	w.mustServeHere()
}

// A command of the key's own may run what it is asked to, as one that keeps a record does.
func TestARealBoxServesAKeyWhoseCommandObeys(t *testing.T) {
	w := newWorld(t, lvmOnARealBox())
	w.logsInBy(`restrict,command="logger -t flex asked; exec sh -c \"$SSH_ORIGINAL_COMMAND\""`)
	w.mustServeHere()
	if asked := mustGuest(t, "box", "journalctl -b -t flex -o cat | sort -u"); asked != "asked" {
		t.Errorf("the key's command has not run: %q", asked)
	}
}

// Any other command is not the provisioner's program, whatever it prints, and however it ends.
func TestARealBoxWhoseKeyHasACommandIsNamed(t *testing.T) {
	w := newWorld(t, lvmOnARealBox())
	for name, command := range map[string]string{"it says no": "echo no; exit 1", "it says nothing": "true"} {
		w.step(name, func() {
			w.logsInBy(`restrict,command="` + command + `"`)
			for _, verb := range []contract.Verb{contract.Provision, contract.Delete} {
				w.mustEnd(w.run(verb, claim(1)), contract.ExitConfig, "its key no command of its own")
			}
		})
	}
	w.mustHaveNothing()
}
