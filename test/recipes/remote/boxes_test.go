//go:build boxes

package remote

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// guestsDirectory names the directory of the guests of test/vm: box, which is the storage, and
// node, which logs in to it. PART=boxes of hack/e2e-long.sh sets it.
const guestsDirectory = "RECIPES_VM"

// The addresses of the guests, as test/vm/env.sh has them.
var guests = map[string]string{"box": "10.250.0.41", "node": "10.250.0.19"}

// asking is how long a guest may take for one thing. It is emulated, on a machine that is busy.
const asking = 10 * time.Minute

// guest runs a script of sh on a guest, with arguments, and returns what it prints and its exit
// code. What it is asked, and says, is in the test's log.
func guest(t *testing.T, name, script string, arguments ...string) (said string, code int) {
	t.Helper()
	dir := os.Getenv(guestsDirectory)
	words := []string{
		"-k", "10", strconv.Itoa(int(asking.Seconds())), "ssh", "-F", "none", "-i", dir + "/key",
		"-o", "UserKnownHostsFile=" + dir + "/known_hosts", "-o", "BatchMode=yes",
		"-o", "IdentitiesOnly=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10",
		"-o", "LogLevel=ERROR",
		"--", "root@" + guests[name], "exec sh -s --",
	}
	for _, argument := range arguments { // the login shell makes words of one line
		words = append(words, "'"+argument+"'")
	}
	run := exec.Command("timeout", words...) // a clean-up has no context any more
	run.Stdin = strings.NewReader("set -eu\nexport LC_ALL=C\n" + script + "\n")
	var out, log bytes.Buffer
	run.Stdout, run.Stderr = &out, &log
	began := time.Now()
	err := run.Run()
	if _, is := errors.AsType[*exec.ExitError](err); err != nil && !is {
		t.Fatal(err)
	}
	code = exitOf(err)
	t.Logf("%s, exit %d after %.1fs: %s %q\n%s%s", name, code, time.Since(began).Seconds(), script, arguments, out.String(), log.String())
	return out.String(), code
}

// mustGuest fails the test if the script fails.
func mustGuest(t *testing.T, name, script string, arguments ...string) string {
	t.Helper()
	said, code := guest(t, name, script, arguments...)
	if code != 0 {
		t.Fatalf("on the guest %s the script ends with %d:\n%s", name, code, script)
	}
	return strings.TrimSpace(said)
}

// onRealBox is the setUp of a recipe whose box is the guest.
func onRealBox(w *world) {
	dir := os.Getenv(guestsDirectory)
	if dir == "" {
		w.t.Fatal("there is no box: " + guestsDirectory + " is not set. PART=boxes make e2e-long has one")
	}
	w.write("box/real", "")
	for _, file := range []string{"key", "known_hosts"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		must(w.t, err)
		w.write("etc/secret/"+file, string(text))
		if file == "key" {
			w.canaries = append(w.canaries, strings.Split(string(text), "\n")[1])
		}
	}
	w.properties["box"] = "root@" + guests["box"]
	w.properties["portal"] = guests["box"]
}

// step is a part of a test, and a cell of the table that PART=boxes prints. The next one needs it.
func (w *world) step(cell string, do func()) {
	w.t.Helper()
	whole := w.t
	passed := whole.Run(cell, func(t *testing.T) {
		w.t = t
		do()
	})
	w.t = whole
	if !passed {
		whole.FailNow()
	}
}

// again runs a verb as the dispatcher does: until it does not end with 75. It returns the last run,
// and what the claim said before.
func (w *world) again(verb contract.Verb, c contract.Request) (last end, said []string) {
	w.t.Helper()
	for limit := time.Now().Add(asking); ; time.Sleep(5 * time.Second) {
		if last = w.run(verb, c); last.code != contract.ExitTempFail || time.Now().After(limit) {
			w.t.Logf("%s ends with %d, after %q", verb, last.code, said)
			return last, said
		}
		said = append(said, last.message)
	}
}

// reboot starts a guest anew, and waits until its systemd has started everything. The command says
// how.
func reboot(t *testing.T, name, command string) {
	t.Helper()
	const id = "cat /proc/sys/kernel/random/boot_id"
	before := mustGuest(t, name, id)
	_, _ = guest(t, name, command) // the connection ends with it
	for limit := time.Now().Add(asking); time.Now().Before(limit); time.Sleep(2 * time.Second) {
		if now, code := guest(t, name, id); code == 0 && strings.TrimSpace(now) != before {
			_, _ = guest(t, name, "systemctl is-system-running --wait") // it may be degraded
			return
		}
	}
	t.Fatalf("the guest %s does not come back", name)
}

// killAfter makes the run of a program on the box the last one of its session: the program dies
// after it, and so does the recipe's. A second word of the program is that of the run. LINES are
// how many lines of its input targetcli reads before that, or all.
func killAfter(t *testing.T, program, lines string) {
	t.Helper()
	name, word, _ := strings.Cut(program, " ")
	mustGuest(t, "box", `
		wrapper=/usr/local/bin/$1
		cat >"$wrapper" <<'END'
#!/bin/sh
name=${0##*/}
word=WORD
export PATH=/usr/sbin:/usr/bin
if [ -n "$word" ] && [ "$1" != "$word" ]; then
  exec "$name" "$@"
fi
rm "/usr/local/bin/$name"
if [ "LINES" = all ]; then
  "$name" "$@"
else
  head -n "LINES" | "$name" "$@"
fi
kill -KILL 0
END
		sed -i "s/LINES/$2/; s/WORD/$3/" "$wrapper"
		chmod +x "$wrapper"`, name, lines, word)
}

// mustDie runs a verb that is killed after a program of the box.
func (w *world) mustDie(verb contract.Verb, c contract.Request, program, lines string) {
	w.t.Helper()
	killAfter(w.t, program, lines)
	w.mustEnd(w.run(verb, c), contract.ExitTempFail, "claim: the storage does not answer")
	name, _, _ := strings.Cut(program, " ")
	mustGuest(w.t, "box", `[ ! -e "/usr/local/bin/$1" ]`, name) // it has been run
}

// mustDieAfter runs a verb whose own process is killed after one of its programs: the first call of
// it with this word.
func (w *world) mustDieAfter(
	verb contract.Verb, c contract.Request, program, word string, unbroken []call,
) {
	w.t.Helper()
	for i, one := range unbroken {
		if one.Name == program && (word == "" || one.Arguments[0] == word) {
			if e := w.killed(len(w.calls())+i+1, verb, c); e.code != 128+9 {
				w.t.Fatalf("killed after %s, the run ends with %d", program, e.code)
			}
			return
		}
	}
	w.t.Fatalf("%s is not among %v", program, unbroken)
}
