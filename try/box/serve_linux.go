package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Where the box has its directories. Its /tmp is a file system in memory that nothing outside sees.
const (
	place  = "/tmp"
	shared = place + "/shared"
	pods   = place + "/pods"
	flex   = place + "/flex"
)

// server is the process in which the containers run: the first one of a PID namespace, so that none
// outlives it.
type server struct {
	mu sync.Mutex
	// kill are the containers that are at work, and killed those that are to end, by their number: a
	// request to kill one may come before it has started.
	kill   map[int]func()
	killed map[int]bool
}

// serve runs containers until the process that opened the box ends, however it ends: its end of the
// connection is closed then.
func serve() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts its own: %w", err)
	}
	if err := syscall.Mount("tmpfs", place, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount a file system in memory: %w", err)
	}
	for _, dir := range []string{shared, pods} {
		if err := directory(dir); err != nil {
			return err
		}
	}
	if err := copySelf(); err != nil {
		return fmt.Errorf("copy this program: %w", err)
	}
	connection, err := net.FileConn(os.NewFile(3, "the other process"))
	if err != nil {
		return err
	}
	s := rpc.NewServer()
	if err := s.RegisterName(serviceName, &server{kill: map[int]func(){}, killed: map[int]bool{}}); err != nil {
		return err
	}
	s.ServeConn(connection)
	return nil
}

// copySelf makes this program a file of the box. It cannot be mounted from where it is: that mount
// is none of this namespace.
func copySelf() error {
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(flex, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // a program
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// Ready answers once the box serves.
func (*server) Ready(struct{}, *struct{}) error { return nil }

// Kill kills a container that is at work, or is about to be.
func (s *server) Kill(number int, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.killed[number] = true
	if kill := s.kill[number]; kill != nil {
		kill()
	}
	return nil
}

// Run runs a container to its end.
func (s *server) Run(call Call, end *End) (err error) {
	dir := filepath.Join(pods, strconv.Itoa(call.Number))
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }() // its mounts have ended with it
	if err := prepare(dir, shared, call.Spec); err != nil {
		return err
	}
	text, err := json.Marshal(call.Spec)
	if err != nil {
		return err
	}
	var out limited
	cmd := exec.Command(self) //nolint:noctx // Kill ends it, and the end of the box
	cmd.Args = []string{containerName, dir}
	cmd.Env = call.Spec.Env
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC}
	kill := func() { _ = cmd.Process.Kill() }
	if err := start(cmd, text, func() { s.at(call.Number, kill) }); err != nil {
		return fmt.Errorf("start a container: %w", err)
	}
	began := time.Now()
	var timer *time.Timer
	if call.Spec.KillAfter > 0 {
		timer = time.AfterFunc(call.Spec.KillAfter, kill)
	}
	_ = cmd.Wait() // the state says how it ended
	s.at(call.Number, nil)
	*end = endOf(cmd.ProcessState, timer)
	end.Took, end.Output = time.Since(began), out.String()
	message, err := os.ReadFile(filepath.Join(dir, "message"))
	end.Message = string(message)
	return err
}

// start starts a container, hands it what to run, and waits until its own program is at work, or has
// failed: what comes before is none of it. started is called in between.
func start(cmd *exec.Cmd, spec []byte, started func()) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	ready, working, err := os.Pipe()
	if err != nil {
		return errors.Join(err, read.Close(), write.Close())
	}
	defer ready.Close()
	cmd.ExtraFiles = []*os.File{read, working} // 3 and 4
	err = cmd.Start()
	_, _ = read.Close(), working.Close() // or the end of the container would not be seen
	if err != nil {
		return errors.Join(err, write.Close())
	}
	started()
	_, _ = write.Write(spec) // a container that was killed reads nothing
	_ = write.Close()
	_, _ = io.Copy(io.Discard, ready) // it ends when the program takes the place of this one
	return nil
}

func (s *server) at(number int, kill func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case kill == nil:
		delete(s.kill, number)
	case s.killed[number]:
		kill()
	default:
		s.kill[number] = kill
	}
}
