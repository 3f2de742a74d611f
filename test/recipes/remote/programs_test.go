package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/shell"
	"github.com/flex-provisioner/flex-provisioner/try/box"
)

// The variables by which a program knows its world, and the call after which its process group is
// killed.
const (
	worldVariable = "RECIPE_WORLD"
	killVariable  = "RECIPE_KILL"
)

// program is one that is played here. It returns its exit code.
type program func(world string, arguments []string, in io.Reader, out, log io.Writer) int

// played are the programs that a script finds here instead of its image's or its box's.
var played = map[string]program{
	"sleep": func(string, []string, io.Reader, io.Writer, io.Writer) int { return 0 },
	"ssh":   ssh, "tgtadm": tgtadm, "tgt-admin": tgtAdmin, "cp": reflink, "df": df,
	"lvs": lvs, "lvcreate": lvcreate, "lvextend": lvextend, "lvchange": lvchange, "lvremove": lvremove, "targetcli": targetcli,
	"zfs": zfs, "exportfs": exportfs, "appliance": serve,
}

// watched are real programs after which a run can be killed: those that change something.
var watched = []string{"curl", "flex", "mkdir", "mv", "rm", "rmdir", "fallocate", "rbd"}

// The test's own binary is every program that a script changes something with, by the name of a
// link to it.
func TestMain(m *testing.M) {
	if world := os.Getenv(worldVariable); world != "" {
		os.Exit(called(world, filepath.Base(os.Args[0]), os.Args[1:]))
	}
	if filepath.Base(os.Args[0]) == "flex" { // in a box of try, which has no world
		os.Exit(shell.Main(os.Args[1:]))
	}
	box.Main()
	code := m.Run()
	_ = os.RemoveAll(flexDir)
	os.Exit(code)
}

// call is one call of a program.
type call struct {
	Name      string
	Arguments []string
}

// called runs a program, and kills the run after it, if this is the call for that.
func called(world, name string, arguments []string) int {
	n, err := record(world, call{name, arguments})
	if err != nil {
		panic(err)
	}
	play := played[name]
	if play == nil {
		play = func(world string, arguments []string, _ io.Reader, _, _ io.Writer) int {
			return actual(world, name, arguments)
		}
	}
	code := play(world, arguments, os.Stdin, os.Stdout, os.Stderr)
	if strconv.Itoa(n) == os.Getenv(killVariable) {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
	return code
}

// actual runs a program as it is on this machine.
func actual(world, name string, arguments []string) int {
	path := filepath.Join(world, "programs", name)
	for _, dir := range []string{"/usr/bin/", "/bin/", "/usr/sbin/"} {
		if _, err := os.Stat(path); err != nil {
			path = dir + name
		}
	}
	cmd := exec.Command(path, arguments...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return exitOf(cmd.Run())
}

// exitOf returns the exit code of a command that has ended, as a shell has it.
func exitOf(err error) int {
	exit, is := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0
	case !is:
		panic(err)
	}
	if status, is := exit.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return exit.ExitCode()
}

// record appends a call to the world's log, and returns its number.
func record(world string, c call) (int, error) {
	n := 0
	err := locked(filepath.Join(world, "calls"), func(file *os.File) error {
		for decoder := json.NewDecoder(file); ; n++ {
			if err := decoder.Decode(&call{}); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
		}
		return json.NewEncoder(file).Encode(c)
	})
	return n + 1, err
}

// locked opens a file that other processes use in the same way.
func locked(path string, do func(*os.File) error) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return do(file)
}

// state reads what a played program keeps, lets it be changed, and writes it. A program that is
// killed later has kept it.
func state[T any](world, name string, change func(*T)) {
	err := locked(filepath.Join(world, "box", name+".json"), func(file *os.File) error {
		var kept T
		if err := json.NewDecoder(file).Decode(&kept); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		change(&kept)
		text, err := json.Marshal(kept)
		if err != nil {
			return err
		}
		if err := file.Truncate(0); err != nil {
			return err
		}
		_, err = file.WriteAt(text, 0)
		return err
	})
	if err != nil {
		panic(err)
	}
}

// unexpected is the end of a played program that does not know what it is asked.
func unexpected(log io.Writer, name string, arguments []string) int {
	fmt.Fprintf(log, "%s does not know %q\n", name, arguments)
	return 99
}
