//go:build boxes

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/recipes/kube"
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

// mustServeANode is that another machine's kernel uses the claim's volume. It stays logged in, and
// the volume is not deleted meanwhile.
func (w *world) mustServeANode(c contract.Request) {
	w.t.Helper()
	w.step("mounted by the kernel", func() {
		w.diskOf(c).mustBeRefused("wrongwrongwrong1")
		w.diskOf(c).mustLogIn()
		w.diskOf(c).mount()
	})
	w.step("written", func() {
		w.diskOf(c).write("of the first claim")
		w.diskOf(c).mustRead("of the first claim")
		e := w.run(contract.Delete, c)
		w.mustEnd(e, contract.ExitTempFail, "claim: a node is still logged in")
		w.mustHave(64*mebi, c)
	})
}

// disk is the claim's PV, as a node uses it.
type disk struct {
	w        *world
	c        contract.Request
	portal   string
	iqn      string
	user     string
	password string
}

// diskOf reads the fields of the claim's PV, and the Secret that it names.
func (w *world) diskOf(c contract.Request) disk {
	w.t.Helper()
	d := disk{w: w, c: c}
	for _, pv := range w.api.All("persistentvolumes") {
		if pv.At("metadata", "name") == c.PVName {
			d.portal = fmt.Sprint(pv.At("spec", "iscsi", "targetPortal"))
			d.iqn = fmt.Sprint(pv.At("spec", "iscsi", "iqn"))
		}
	}
	for _, secret := range w.api.All("secrets") {
		if secret.At("metadata", "name") == c.PVName {
			d.user = kube.Text(w.t, secret, "node.session.auth.username")
			d.password = kube.Password(w.t, secret)
		}
	}
	if d.portal == "" || d.user == "" {
		w.t.Fatalf("there is no PV of %s, or no Secret", c.Name)
	}
	return d
}

// login logs the node in with a password, and returns the exit code of iscsiadm.
func (d disk) login(password string) int {
	d.w.t.Helper()
	_, code := guest(d.w.t, "node", `
		portal=$1 iqn=$2 user=$3 password=$4
		admin() { iscsiadm -m node -T "$iqn" -p "$portal:3260" "$@"; }
		admin -o new >/dev/null
		admin -o update -n node.session.auth.authmethod -v CHAP
		admin -o update -n node.session.auth.username -v "$user"
		admin -o update -n node.session.auth.password -v "$password"
		admin -o update -n node.session.timeo.replacement_timeout -v 600
		exec iscsiadm -m node -T "$iqn" -p "$portal:3260" --login`, d.portal, d.iqn, d.user, password)
	return code
}

// mustLogIn logs the node in as the kubelet does, and waits for the kernel's disk.
func (d disk) mustLogIn() {
	d.w.t.Helper()
	if code := d.login(d.password); code != 0 {
		d.w.t.Fatalf("the login to %s ends with %d", d.iqn, code)
	}
	mustGuest(d.w.t, "node", `
		for n in $(seq 120); do
		  [ ! -b "$1" ] || exit 0
		  sleep 1
		done
		exit 1`, d.device())
}

// mustBeRefused fails the test if the target takes another password. 24 is the exit code of
// iscsiadm for that.
func (d disk) mustBeRefused(password string) {
	d.w.t.Helper()
	code := d.login(password)
	if code != 24 {
		d.w.t.Fatalf("with a wrong password the login to %s ends with %d", d.iqn, code)
	}
	d.forget()
}

func (d disk) device() string {
	return fmt.Sprintf("/dev/disk/by-path/ip-%s:3260-iscsi-%s-lun-1", d.portal, d.iqn)
}

// forget removes what the node has of the target.
func (d disk) forget() {
	d.w.t.Helper()
	mustGuest(d.w.t, "node", `iscsiadm -m node -T "$1" -p "$2:3260" -o delete`, d.iqn, d.portal)
}

// logOut logs the node out, and waits until its disk is not there.
func (d disk) logOut() {
	d.w.t.Helper()
	mustGuest(d.w.t, "node", `iscsiadm -m node -T "$1" -p "$2:3260" --logout`, d.iqn, d.portal)
	d.forget()
}

// mount formats the disk if it has no file system, and mounts it.
func (d disk) mount() {
	d.w.t.Helper()
	mustGuest(d.w.t, "node", `
		blkid "$1" || mkfs.ext4 -q "$1"
		mkdir -p "/mnt/$2"
		mount "$1" "/mnt/$2"`, d.device(), d.c.PVName)
}

func (d disk) unmount() {
	d.w.t.Helper()
	mustGuest(d.w.t, "node", `umount "/mnt/$1"`, d.c.PVName)
}

// write writes a text to the disk itself.
func (d disk) write(text string) {
	d.w.t.Helper()
	mustGuest(d.w.t, "node", `
		echo "$2" >"/mnt/$1/file"
		sync -f "/mnt/$1/file"`, d.c.PVName, text)
}

// mustRead fails the test unless the disk itself has this text: not the node's memory.
func (d disk) mustRead(text string) {
	d.w.t.Helper()
	got := mustGuest(d.w.t, "node", `
		sync
		echo 3 >/proc/sys/vm/drop_caches
		cat "/mnt/$1/file"`, d.c.PVName)
	if got != text {
		d.w.t.Fatalf("the file has %q, want %q", got, text)
	}
}

// grow makes the mounted file system as large as the disk, and returns the sizes of both in bytes.
func (d disk) grow() (device, files int64) {
	d.w.t.Helper()
	said := mustGuest(d.w.t, "node", `
		iscsiadm -m node -T "$3" -p "$4:3260" --rescan >&2
		sleep 2
		resize2fs "$1" >&2
		blockdev --getsize64 "$1"
		df --output=size -B1 "/mnt/$2" | tail -n 1`, d.device(), d.c.PVName, d.iqn, d.portal)
	if n, err := fmt.Sscan(said, &device, &files); n != 2 {
		d.w.t.Fatal(err)
	}
	return device, files
}

// use is what a pod does: it logs in, mounts, and writes its first file.
func (d disk) use(text string) {
	d.w.t.Helper()
	d.mustLogIn()
	d.mount()
	d.write(text)
}

// leave is the end of that pod.
func (d disk) leave() {
	d.w.t.Helper()
	d.unmount()
	d.logOut()
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
// after it, and so does the recipe's. LINES are how many lines of its input targetcli reads before
// that, or all.
func killAfter(t *testing.T, program, lines string) {
	t.Helper()
	mustGuest(t, "box", `
		wrapper=/usr/local/bin/$1
		cat >"$wrapper" <<'END'
#!/bin/sh
rm "/usr/local/bin/${0##*/}"
if [ "LINES" = all ]; then
  "${0##*/}" "$@"
else
  head -n "LINES" | "${0##*/}" "$@"
fi
kill -KILL 0
END
		sed -i "s/LINES/$2/" "$wrapper"
		chmod +x "$wrapper"`, program, lines)
}

// mustDie runs a verb that is killed after a program of the box.
func (w *world) mustDie(verb contract.Verb, c contract.Request, program, lines string) {
	w.t.Helper()
	killAfter(w.t, program, lines)
	w.mustEnd(w.run(verb, c), contract.ExitTempFail, "claim: the storage does not answer")
	mustGuest(w.t, "box", `[ ! -e "/usr/local/bin/$1" ]`, program) // it has been run
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
