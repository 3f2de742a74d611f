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
	mu   sync.Mutex
	kill map[int]func() // of the containers that are at work, by their number
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
	if err := s.RegisterName(serviceName, &server{kill: map[int]func(){}}); err != nil {
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

// Kill kills a container that is at work.
func (s *server) Kill(number int, _ *struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
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
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	var out limited
	cmd := exec.Command(self) //nolint:noctx // Kill ends it, and the end of the box
	cmd.Args = []string{containerName, dir}
	cmd.Env = call.Spec.Env
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &out, []*os.File{read}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC}
	if err := cmd.Start(); err != nil {
		_ = write.Close()
		return fmt.Errorf("start a container: %w", err)
	}
	began := time.Now()
	s.at(call.Number, func() { _ = cmd.Process.Kill() })
	_, err = write.Write(text)
	_ = write.Close()
	var timer *time.Timer
	if call.Spec.KillAfter > 0 {
		timer = time.AfterFunc(call.Spec.KillAfter, func() { _ = cmd.Process.Kill() })
	}
	_ = cmd.Wait() // the state says how it ended
	s.at(call.Number, nil)
	*end = endOf(cmd.ProcessState, timer)
	end.Took, end.Output = time.Since(began), out.String()
	message, _ := os.ReadFile(filepath.Join(dir, "message"))
	end.Message = string(message)
	return err
}

func (s *server) at(number int, kill func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kill[number] = kill
	if kill == nil {
		delete(s.kill, number)
	}
}
