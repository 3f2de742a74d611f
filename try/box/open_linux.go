package box

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
)

// The names under which this program starts itself, and what it runs then.
const (
	boxName       = "flex-try-box"
	containerName = "flex-try-container"
	self          = "/proc/self/exe"
	serviceName   = "Box"
)

// Call is a container, with its number.
type Call struct {
	Number int
	Spec   Spec
}

// Main runs what this program does under one of the names of a box, and does not return then. A
// program that opens a box calls it before it does anything else.
func Main() {
	var err error
	switch os.Args[0] {
	case boxName:
		err = serve()
	case containerName:
		err = enter(os.Args[1])
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(NotStarted)
	}
	os.Exit(0)
}

// Box is where containers run.
type Box struct {
	process *exec.Cmd
	client  *rpc.Client
	said    *strings.Builder
	calls   atomic.Int64
}

// ids is how many users and groups a box of root has. They are none of this machine: what a script
// does as root in a box, it does not do as root of the machine.
const (
	ids     = 1 << 16
	firstID = 0x70000000
)

// Open starts a box.
func Open() (*Box, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("connect to the containers: %w", err)
	}
	own, its := os.NewFile(uintptr(pair[0]), "box"), os.NewFile(uintptr(pair[1]), "box")
	connection, err := net.FileConn(own) // which duplicates it
	_ = own.Close()
	if err != nil {
		return nil, errors.Join(err, its.Close())
	}
	b := &Box{process: exec.Command(self), said: &strings.Builder{}} //nolint:noctx // Close ends it
	b.process.Args = []string{boxName}
	b.process.Env = []string{}
	b.process.Stderr, b.process.ExtraFiles = b.said, []*os.File{its}
	b.process.SysProcAttr = isolated()
	err = b.process.Start()
	_ = its.Close() // or the end of the other process would not be seen
	if err != nil {
		_ = connection.Close()
		return nil, refused(err)
	}
	b.client = rpc.NewClient(connection)
	if err := b.client.Call(serviceName+".Ready", struct{}{}, &struct{}{}); err != nil {
		_ = b.client.Close()
		_ = b.process.Wait() // it has said why
		return nil, refused(errors.New(strings.TrimSpace(b.said.String())))
	}
	return b, nil
}

// isolated returns the namespaces of a box. Ctrl-C is not for its processes: whoever opened it ends
// it.
func isolated() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC,
		Setpgid:    true,
	}
	first, n := os.Geteuid(), 1
	group := os.Getegid()
	if first == 0 {
		first, group, n = firstID, firstID, ids
		attr.GidMappingsEnableSetgroups = true
	}
	attr.Credential = &syscall.Credential{NoSetGroups: n == 1} // root of the namespace
	attr.UidMappings = []syscall.SysProcIDMap{{HostID: first, Size: n}}
	attr.GidMappings = []syscall.SysProcIDMap{{HostID: group, Size: n}}
	return attr
}

// refused returns why no box can be had, with what an administrator can do about it.
func refused(err error) error {
	return fmt.Errorf("this machine lets you make no containers of your own (%w). Remedy: on Ubuntu, "+
		"sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0; elsewhere, sysctl "+
		"user.max_user_namespaces must not be 0; or install podman or docker, and name the image for "+
		"scripts by --script-image", err)
}

// Run runs a container to its end.
func (b *Box) Run(ctx context.Context, spec Spec) (end End, err error) {
	number := int(b.calls.Add(1))
	call := b.client.Go(serviceName+".Run", Call{number, spec}, &end, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		err = b.client.Call(serviceName+".Kill", number, &struct{}{})
		<-call.Done
	}
	return end, errors.Join(call.Error, err)
}

// Close ends all containers. What they had mounted and written ends with them.
func (b *Box) Close() error {
	err := b.client.Close()
	if ended := b.process.Wait(); ended != nil {
		err = errors.Join(err, fmt.Errorf("end the containers: %w: %s", ended, b.said))
	}
	return err
}
