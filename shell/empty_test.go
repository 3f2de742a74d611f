package shell

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// With an empty variable, a path is that of the volumes of all claims.
func TestPathOfMoreThanOneDirectoryIsRefused(t *testing.T) {
	for dir, name := range map[string]string{
		"/volumes/pvc-1": "pvc-1", "/volumes//pvc-1": "pvc-1", "/pvc-1": "pvc-1", "/volumes/..pvc": "..pvc",
		"": "", "/": "", ".": "", "..": "", "/volumes/": "", "/volumes/.": "", "/volumes/..": "", "/volumes/pvc-1/": "", "pvc-1": "", "./pvc-1": "",
	} {
		parent, got, err := split(dir)
		if got != name || (err == nil) != (name != "") || err == nil && parent+got != dir {
			t.Errorf("%q: parent %q, name %q, %v", dir, parent, got, err)
		}
	}
}

// flex runs flex empty, and returns its exit code and what it prints.
func flex(dirs ...string) (code int, says string) {
	var out bytes.Buffer
	code = execute(&container{out: &out, log: &out}, append([]string{"empty"}, dirs...))
	return code, out.String()
}

func TestNothingIsDeletedWhereOnePathIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pvc-1")
	must(t, os.MkdirAll(dir+"/in", 0o755))
	if code, says := flex(dir, dir+"/"); code != contract.ExitUsage || !strings.Contains(says, "${FLEX_PV_NAME:?}") {
		t.Errorf("exit %d: %s", code, says)
	}
	_, err := os.Stat(dir + "/in")
	must(t, err)
}

// Only the administrator and the image write beside the volumes. What is no directory there is not
// a volume.
func TestWhatIsNotADirectoryIsKept(t *testing.T) {
	base := t.TempDir()
	must(t, os.MkdirAll(base+"/other/in", 0o755))
	must(t, os.WriteFile(base+"/file", nil, 0o600))
	must(t, os.Symlink("other", base+"/link"))
	for _, name := range []string{"/file", "/link"} {
		if code, says := flex(base + name); code != contract.ExitUsage || !strings.Contains(says, "is not a directory") {
			t.Errorf("exit %d: %s", code, says)
		}
		_, err := os.Lstat(base + name)
		must(t, err)
	}
	_, err := os.Stat(base + "/other/in")
	must(t, err)
}

// asOwner runs f without the rights of root, as the owner of what it makes: without
// CAP_DAC_OVERRIDE, as on an NFS server. The rights of a thread end with it.
func asOwner(t *testing.T, f func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if os.Getuid() == 0 {
			_ = syscall.Setfsgid(65534)
			_ = syscall.Setfsuid(65534)
		}
		done <- f()
	}()
	must(t, <-done)
}

// leftovers fills a volume with what pods leave, and links to a directory beside it.
func leftovers(dir, beside string) error {
	steps := []func() error{
		func() error { return os.MkdirAll(dir+"/a/b/c", 0o755) },
		func() error { return os.WriteFile(dir+"/a/b/new\nclaim: line", nil, 0o400) },
		func() error { return os.Symlink(beside, dir+"/absolute") },
		func() error { return os.Symlink("../../../beside", dir+"/a/b/relative") },
		func() error { return os.Symlink(".", dir+"/a/itself") },
		func() error { return os.Symlink("nowhere", dir+"/dangling") },
		func() error { return syscall.Mkfifo(dir+"/a/pipe", 0o600) },
		func() error { return os.MkdirAll(dir+"/modules/cache", 0o755) },
		func() error { return os.WriteFile(dir+"/modules/cache/read-only", nil, 0o400) },
		func() error { return os.Chmod(dir+"/modules/cache", 0o555) },
		func() error { return os.MkdirAll(dir+"/closed/in", 0o755) },
		func() error { return os.Chmod(dir+"/closed", 0) },
		func() error { return os.Chmod(dir, 0o500) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func TestEverythingThatPodsLeaveIsDeletedAndNothingBeside(t *testing.T) {
	base := t.TempDir()
	must(t, os.Chmod(filepath.Dir(base), 0o755)) // for another user, too
	must(t, os.Chmod(base, 0o777))
	beside := base + "/beside"
	must(t, os.MkdirAll(beside+"/in", 0o777))
	must(t, os.Chmod(beside, 0o777))
	asOwner(t, func() error {
		dir := base + "/pvc-1"
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/s"})
		if err != nil {
			return err
		}
		socket.SetUnlinkOnClose(false)
		_ = socket.Close()
		if err := leftovers(dir, beside); err != nil {
			return err
		}
		if code, says := flex(dir, base+"/not-there"); code != contract.ExitDone || says != "" {
			return fmt.Errorf("exit %d: %s", code, says)
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	_, err := os.Stat(beside + "/in")
	must(t, err)
}

// One that cannot be deleted holds up no other, and nothing of it but what cannot be.
func TestWhatCannotBeDeletedIsNamedWithItsRemedy(t *testing.T) {
	if os.Getuid() != 0 { // CI is root
		t.Skip("only root has files of another user")
	}
	base := t.TempDir()
	must(t, os.Chmod(filepath.Dir(base), 0o755))
	must(t, os.Chmod(base, 0o777))
	for _, name := range []string{"/pvc-1/of-root", "/pvc-1/open", "/pvc-2/open"} {
		must(t, os.MkdirAll(base+name, 0o777))
		must(t, os.WriteFile(base+name+"/file", nil, 0o600))
		must(t, os.Chmod(base+name, 0o777))
		must(t, os.Chmod(filepath.Dir(base+name), 0o777))
	}
	must(t, os.Chmod(base+"/pvc-1/of-root", 0o755))
	asOwner(t, func() error {
		code, says := flex(base+"/pvc-1", base+"/pvc-2")
		want := fmt.Sprintf("%q cannot be deleted: permission denied. Remedy: run as the owner of all files", base+"/pvc-1/of-root/file")
		if code != contract.ExitTempFail || !strings.Contains(says, want) {
			return fmt.Errorf("exit %d: %s", code, says)
		}
		return nil
	})
	for name, stays := range map[string]bool{"/pvc-1/of-root/file": true, "/pvc-1/open": false, "/pvc-2": false} {
		if _, err := os.Lstat(base + name); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message is shown where a line that begins with "claim: " is for the claim's user.
func TestNamesOfPodsBeginNoLineOfAMessage(t *testing.T) {
	name := "/volumes/pvc-1/a\nclaim: b" + strings.Repeat("/long", 1000)
	says := failure(name, &os.PathError{Op: "unlinkat", Path: name, Err: syscall.EIO}).Error()
	if strings.Contains(says, "\n") || len(says) > 500 || !strings.Contains(says, "input/output error. It is tried again") {
		t.Errorf("%d bytes: %s", len(says), says)
	}
}

// A pod nests directories as deep as it likes. A walk that has a file open in each of them ends
// when there are no more.
func TestDeepTreeIsDeletedWithFewOpenFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pvc-1")
	must(t, os.Mkdir(dir, 0o755))
	in, err := os.OpenRoot(dir)
	must(t, err)
	for range 1000 {
		must(t, in.Mkdir("d", 0o755))
		below, err := in.OpenRoot("d")
		must(t, err)
		_ = in.Close()
		in = below
	}
	_ = in.Close()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "ulimit -n 200; exec flex empty "+dir)
	cmd.Env = []string{"PATH=" + programs(t)}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %.500s", err, out)
	}
	if _, err := os.Lstat(dir); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
}

// A pipe that a pod has put in the place of a directory would be waited for until another process
// opens it.
func TestPipeInPlaceOfADirectoryIsNotWaitedFor(t *testing.T) {
	base := t.TempDir()
	must(t, syscall.Mkfifo(base+"/pipe", 0o600))
	root, err := os.OpenRoot(base)
	must(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := enter(root, "pipe")
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a pipe was opened as a directory")
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
}

// A pod that goes on writing leaves something behind every walk. The run ends all the same, says
// why, and is tried again.
func TestDeleteEndsWhileAPodGoesOnWriting(t *testing.T) {
	const writes, lacks = "A pod still writes to it", "capabilities DAC_OVERRIDE and FOWNER"
	denied := failure("/volumes/pvc-1/f", syscall.EPERM)
	for name, test := range map[string]struct {
		after        walk
		walks, moved int
		stops        string
	}{
		"before the first walk":                       {walk{}, 0, 0, ""},
		"there is more than was deleted":              {walk{removed: 9}, most - 1, 0, ""},
		"there always is":                             {walk{removed: 9}, most, 0, writes},
		"also where nothing was found":                {walk{}, most, 0, writes},
		"some of it cannot be deleted":                {walk{removed: 9, first: denied}, 1, 0, ""},
		"some of it cannot, and there always is more": {walk{removed: 9, first: denied}, most, 0, lacks},
		"nothing of it can be deleted":                {walk{first: denied}, 1, 0, lacks},
		"a deep tree is cut into pieces":              {walk{moved: 1, removed: 9}, most, mostMoved - 1, ""},
		"the same, where something cannot be deleted": {walk{moved: 1, first: denied}, most, 1, ""},
		"a pod nests directories without end":         {walk{moved: 1, removed: 9}, 0, mostMoved, writes},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.after.stops(test.walks, test.moved)
			if test.stops == "" && err != nil || test.stops != "" && (err == nil || !strings.Contains(err.Error(), strings.Replace(test.stops, lacks, "FOWNER", 1))) {
				t.Errorf("stops: %v, want %q", err, test.stops)
			}
		})
	}
}
