package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	attackerUID = "aaaaaaaa-2222-3333-4444-777777777777"
	victims     = 10
	crowd       = 1000 // files that keep a delete busy while its directory is replaced
)

// rmByPath is rm as busybox has it: it names each file by its whole path, which leads elsewhere
// when a part of it is replaced by a link.
func rmByPath(arguments []string) int {
	for _, path := range arguments {
		if !strings.HasPrefix(path, "-") && removeByPath(path) != nil {
			return 1
		}
	}
	return 0
}

func removeByPath(path string) error {
	info, err := os.Lstat(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return syscall.Unlink(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		_ = removeByPath(path + "/" + e.Name())
	}
	return syscall.Rmdir(path)
}

// script is a provisioner of scripts, whose volumes are in base, and what its image finds beside
// it.
type script struct {
	name      string
	constants func(base string) []string // each followed by what it is here
}

// The export is a directory at /export there, and may not be one of this machine.
var deleting = []script{
	{"directory", func(string) []string { return nil }},
	{"seed", func(string) []string { return nil }},
	{"nfs", func(base string) []string {
		return []string{"/export/$place", base + "/$FLEX_PV_NAME", "/export/$below", base}
	}},
	{"isolated", func(string) []string { return nil }},
	{"file-server", func(string) []string { return nil }},
}

// world is a directory of volumes: of ten victims, and of an attacker, whose pod still runs.
type world struct {
	t    *testing.T
	base string
	own  string
	bin  string
	text string // of the script
}

func newWorld(t *testing.T, s script, change ...string) *world {
	t.Helper()
	w := &world{t: t, base: filepath.Join(t.TempDir(), "flex-volumes"), bin: programs(t)}
	w.own = filepath.Join(w.base, "pvc-"+attackerUID)
	source, err := os.ReadFile("../../scripts/" + s.name + "-provisioner.sh")
	must(t, err)
	w.text = string(source)
	replace := append(s.constants(w.base), change...)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(w.text, replace[i]) {
			t.Fatalf("the script has no %q", replace[i])
		}
		w.text = strings.ReplaceAll(w.text, replace[i], replace[i+1])
	}
	for i := range victims {
		dir := filepath.Join(w.base, fmt.Sprintf("pvc-%d-victim", i), "pgdata") // a walk finds them before the attacker's own
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(dir+"/data", []byte("precious"), 0o600))
	}
	return w
}

// prey fills the attacker's volume: a directory with a crowd of files and the name of the directory
// of all volumes.
func (w *world) prey() {
	w.t.Helper()
	must(w.t, os.RemoveAll(w.own)) // which follows no link of the round before
	in := w.own + "/d/" + filepath.Base(w.base)
	must(w.t, os.MkdirAll(in+"/deeper", 0o755))
	for i := range crowd {
		must(w.t, os.WriteFile(fmt.Sprintf("%s/d/f%d", w.own, i), nil, 0o600))
	}
}

// delete starts the script.
func (w *world) delete(out *bytes.Buffer) *exec.Cmd {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "bash", "-c", w.text, "provision", "delete")
	cmd.Env = []string{
		"PATH=" + w.bin + ":/usr/bin:/bin", "FLEX_BASE_DIR=" + w.base, "FLEX_PV_NAME=pvc-" + attackerUID, "FLEX_CLAIM_UID=" + attackerUID,
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that all of it can be stopped
	must(w.t, cmd.Start())
	return cmd
}

// watch returns a file that can be read as soon as an entry of a directory is deleted.
func (w *world) watch(dir string) *os.File {
	w.t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	must(w.t, err)
	_, err = syscall.InotifyAddWatch(fd, dir, syscall.IN_DELETE)
	must(w.t, err)
	file := os.NewFile(uintptr(fd), "inotify")
	must(w.t, file.SetReadDeadline(time.Now().Add(time.Minute)))
	return file
}

// attack runs the script while the attacker's pod swaps, and reports whether the first swap was in
// time. A pod may try again and again until it is fast enough; here the script is stopped for as
// long as the swap takes.
func (w *world) attack(goOn func()) (inTime bool) {
	w.t.Helper()
	w.prey()
	deleted := w.watch(w.own + "/d")
	defer deleted.Close()
	var out bytes.Buffer
	cmd := w.delete(&out)
	_, failed := deleted.Read(make([]byte, 4096))
	must(w.t, syscall.Kill(-cmd.Process.Pid, syscall.SIGSTOP))
	if os.Rename(w.own+"/d", w.own+"/.d") == nil {
		_, err := os.Stat(w.own + "/.d/" + filepath.Base(w.base))
		inTime = err == nil && os.Symlink("../..", w.own+"/d") == nil
	}
	must(w.t, syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			must(w.t, failed)
			w.t.Logf("in time: %t, exit %d: %.300s", inTime, exitOf(w.t, err), &out)
			return inTime
		case <-time.After(50 * time.Microsecond):
			goOn()
		}
	}
}

// link puts the link there again when it has been deleted.
func (w *world) link() { _ = os.Symlink("../..", w.own+"/d") }

// flip replaces the link by a directory, and that by the link.
func (w *world) flip() {
	_ = os.MkdirAll(w.own+"/.d/"+filepath.Base(w.base)+"/deeper", 0o755)
	_ = os.Remove(w.own + "/d")
	_ = os.Rename(w.own+"/.d", w.own+"/d")
	time.Sleep(50 * time.Microsecond)
	_ = os.Rename(w.own+"/d", w.own+"/.d")
	w.link()
}

// lost returns how many victims have lost their file.
func (w *world) lost() int {
	w.t.Helper()
	data, err := filepath.Glob(w.base + "/pvc-*-victim/pgdata/data")
	must(w.t, err)
	return victims - len(data)
}

// attackUntil attacks until a swap has done what is wanted.
func (w *world) attackUntil(goOn func(), wanted func(inTime bool) bool) {
	w.t.Helper()
	for range 20 {
		if wanted(w.attack(goOn)) {
			return
		}
	}
	w.t.Fatal("no swap has done it")
}

// A pod may write to its volume while that is deleted. It deletes no file of another volume by
// links.
func TestDeleteStaysInAVolumeWhosePodSwapsLinks(t *testing.T) {
	t.Parallel()
	for _, s := range deleting {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s)
			for _, goOn := range []func(){w.link, w.flip} {
				w.attackUntil(goOn, func(inTime bool) bool { return inTime || w.lost() > 0 })
			}
			var out bytes.Buffer
			if code := exitOf(t, w.delete(&out).Wait()); code != 0 {
				t.Errorf("when the pod has ended, the next run exits with %d: %s", code, &out)
			}
			if _, err := os.Lstat(w.own); !os.IsNotExist(err) {
				t.Errorf("the attacker's volume is not deleted: %v", err)
			}
			if n := w.lost(); n > 0 {
				t.Errorf("%d of %d victims have lost their file", n, victims)
			}
		})
	}
}

// The same attack on the same scripts succeeds where they delete by rm -rf. If it did not, the test
// above would show nothing.
func TestTheSameSwapsDeleteOtherVolumesWithoutFlexEmpty(t *testing.T) {
	t.Parallel()
	for _, s := range deleting {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s, "flex empty ", "rm -rf -- ")
			w.attackUntil(w.link, func(bool) bool { return w.lost() > 0 })
		})
	}
}

func TestEveryScriptThatDeletesIsAttacked(t *testing.T) {
	scripts, err := filepath.Glob("../../scripts/*-provisioner.sh")
	must(t, err)
	var found []string
	for _, path := range scripts {
		text, err := os.ReadFile(path)
		must(t, err)
		name := strings.TrimSuffix(filepath.Base(path), "-provisioner.sh")
		if strings.Contains(string(text), "flex empty") && name != "btrfs" { // of which the kernel deletes a subvolume: test/recipes
			found = append(found, name)
		}
	}
	var attacked []string
	for _, s := range deleting {
		attacked = append(attacked, s.name)
	}
	slices.Sort(attacked)
	if !slices.Equal(found, attacked) {
		t.Errorf("scripts that delete: %q, attacked: %q", found, attacked)
	}
}
