//go:build e2e && storms

package e2e

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The nodes of the lab share the kernel's clock. But a program asks for the time by code that the
// kernel shows it, the vDSO, which can be changed in one process alone: from then on its clock is
// off, until the code is as it was. The monotonic clock stays right, as where an administrator sets
// the clock of a machine.

// vdsoCode is where the functions are, which is the same in every process's vDSO.
type vdsoCode struct {
	// entry of clock_gettime, and what is there.
	entry    int64
	original []byte
	// room is where code may be put: gettimeofday, which no program in Go calls.
	room int64
}

// clockCode is found once, in this process.
var clockCode = sync.OnceValues(func() (vdsoCode, error) {
	if runtime.GOARCH != "amd64" {
		return vdsoCode{}, errors.New("the clock of a process can be set off on amd64 only")
	}
	begin, end, err := vdsoOf(os.Getpid())
	if err != nil {
		return vdsoCode{}, err
	}
	image := make([]byte, end-begin)
	if err := memory(os.Getpid(), os.O_RDONLY, func(m *os.File) error { _, err := m.ReadAt(image, begin); return err }); err != nil {
		return vdsoCode{}, err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return vdsoCode{}, fmt.Errorf("read the vDSO: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	functions := map[string]elf.Symbol{}
	for _, s := range symbols {
		functions[s.Name] = s
	}
	entry, room := functions["__vdso_clock_gettime"], functions["__vdso_gettimeofday"]
	if err != nil || entry.Size < jumpSize || room.Size < uint64(len(offBy(0))) {
		return vdsoCode{}, errors.Join(err, errors.New("the vDSO has not the functions that are wanted"))
	}
	return vdsoCode{entry: int64(entry.Value), original: image[entry.Value : entry.Value+jumpSize], room: int64(room.Value)}, nil
})

// offBy returns code that answers as clock_gettime does, but with the wall clock off by so many
// seconds.
func offBy(seconds int32) []byte {
	code := []byte{
		0xb8, 0xe4, 0, 0, 0, // mov eax, 228 (clock_gettime)
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x75, 0x10, // jne the end
		0x85, 0xff, // test edi, edi (CLOCK_REALTIME)
		0x74, 0x05, // je the addition
		0x83, 0xff, 0x05, // cmp edi, 5 (CLOCK_REALTIME_COARSE)
		0x75, 0x07, // jne the end
		0x48, 0x81, 0x06, // add qword [rsi], seconds
	}
	code = binary.LittleEndian.AppendUint32(code, uint32(seconds))
	return append(code, 0xc3) // the end: ret
}

// jumpSize is the size of a jump.
const jumpSize = 5

// jump is what clock_gettime begins with in a program whose clock is off. Whoever is in the middle
// of it goes on in the old code.
func (c vdsoCode) jump() []byte {
	return binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(int32(c.room-c.entry-jumpSize)))
}

// vdsoOf returns where a process has its vDSO.
func vdsoOf(pid int) (begin, end int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &begin, &end)
			return begin, end, err
		}
	}
	return 0, 0, fmt.Errorf("the process %d has no vDSO: %w", pid, fs.ErrNotExist)
}

// memory opens the memory of a process.
func memory(pid, flag int, use func(*os.File) error) error {
	m, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), flag, 0)
	if err != nil {
		return err
	}
	defer m.Close()
	return use(m)
}

// setOff sets the clock of a process off, of which no thread may be at the first instructions of
// clock_gettime.
func (c vdsoCode) setOff(pid int, by time.Duration) error {
	begin, _, err := vdsoOf(pid)
	if err != nil {
		return err
	}
	return memory(pid, os.O_WRONLY, func(m *os.File) error {
		if _, err := m.WriteAt(offBy(int32(by/time.Second)), begin+c.room); err != nil {
			return err
		}
		_, err := m.WriteAt(c.jump(), begin+c.entry)
		return err
	})
}

// setRight sets it right.
func (c vdsoCode) setRight(pid int) error {
	begin, _, err := vdsoOf(pid)
	if err != nil {
		return err
	}
	return memory(pid, os.O_WRONLY, func(m *os.File) error { _, err := m.WriteAt(c.original, begin+c.entry); return err })
}

// change does one of them with a process that runs.
func (c vdsoCode) change(pid int, do func() error) error {
	begin, _, err := vdsoOf(pid)
	if err != nil {
		return err
	}
	for range 100 {
		done, err := whileStopped(pid, begin+c.entry+1, begin+c.entry+jumpSize, do)
		if done || err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("the process %d is always at its clock", pid)
}

// whileStopped does something while a process is stopped, if none of its threads is between two
// addresses then, and reports whether it is so.
func whileStopped(pid int, from, to int64, do func() error) (outside bool, err error) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return false, err
	}
	for range 20 { // a thread that runs takes a moment to stop
		if outside, err = isOutside(pid, from, to); outside || err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if outside {
		err = do()
	}
	return outside, errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
}

// isOutside reports whether all threads of a process are stopped, none of them between two
// addresses.
func isOutside(pid int, from, to int64) (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue
		}
		words := strings.Fields(string(text)) // "running", or numbers of which the last is where it goes on
		if err != nil || len(words) < 3 {
			return false, err
		}
		at, err := strconv.ParseInt(strings.TrimPrefix(words[len(words)-1], "0x"), 16, 64)
		if err != nil || at >= from && at < to {
			return false, err
		}
	}
	return len(threads) > 0, err
}

// clockedPrograms are those of a node that ask for the time.
var clockedPrograms = []string{"hyperkube", "containerd", "containerd-shim-runc-v2", "flex-dispatcher", "cinder-provisioner"}

// clock is that of a node, which is off: of its kubelet, its containerd, its dispatchers and its
// provisioners.
type clock struct {
	code vdsoCode
	by   time.Duration
	node string
	// seen are the programs of processes that were looked at.
	seen map[int]string
	stop chan struct{}
	done chan error
}

// setClockOff sets the clock of a node's programs off, also of those that start later, until it is
// set right.
func setClockOff(node string, by time.Duration) (*clock, error) {
	code, err := clockCode()
	if err != nil {
		return nil, err
	}
	c := &clock{code: code, by: by, node: node, seen: map[int]string{}, stop: make(chan struct{}), done: make(chan error, 1)}
	go func() { c.done <- c.keep() }()
	return c, nil
}

// setRight ends it.
func (c *clock) setRight() error {
	close(c.stop)
	return <-c.done
}

// keep sets the clocks of new programs off, four times a second, and all right at the end.
func (c *clock) keep() error {
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	var err error
	for {
		err = errors.Join(err, c.each(func(pid int) error { return c.code.setOff(pid, c.by) }))
		select {
		case <-again.C:
		case <-c.stop:
			c.seen = map[int]string{}
			return errors.Join(err, c.each(c.code.setRight))
		}
	}
}

// each does something to each process that was not there before, or that has become another
// program. One may end meanwhile.
func (c *clock) each(do func(pid int) error) error {
	processes, err := os.ReadDir("/proc")
	errs := []error{err}
	for _, process := range processes {
		pid, notOne := strconv.Atoi(process.Name())
		program, err := os.Readlink(filepath.Join("/proc", process.Name(), "exe"))
		if notOne != nil || err != nil || c.seen[pid] == program {
			continue
		}
		c.seen[pid] = program
		if !slices.Contains(clockedPrograms, filepath.Base(program)) || !isOfNode(pid, c.node) {
			continue
		}
		if err := c.code.change(pid, func() error { return do(pid) }); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("the clock of %s (%d): %w", program, pid, err))
		}
	}
	return errors.Join(errs...)
}

// isOfNode reports whether a process is in a node's control group.
func isOfNode(pid int, node string) bool {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && slices.ContainsFunc(strings.FieldsFunc(string(groups), func(r rune) bool { return r == '/' || r == '\n' }),
		func(part string) bool { return part == "node"+node })
}

// runAtAnotherTime runs a program whose clock is off from its first instruction on.
func runAtAnotherTime(by time.Duration, cmd *exec.Cmd) error {
	code, err := clockCode()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // whoever traces is a thread
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid, status := cmd.Process.Pid, syscall.WaitStatus(0)
	_, err = syscall.Wait4(pid, &status, 0, nil) // it stops before its first instruction
	err = errors.Join(err, code.setOff(pid, by), syscall.PtraceDetach(pid))
	return errors.Join(err, cmd.Wait())
}
