package box

import (
	"context"
	"time"
)

// Spec is a container.
type Spec struct {
	// Image is for a container engine. Command and Args are as Kubernetes has them: without an image
	// the program is both.
	Image     string
	Command   []string
	Args      []string
	Env       []string // NAME=value
	Dir       string
	Volumes   []Volume
	UID, GID  int
	CapsAdded []string // as Kubernetes names them: without CAP_
	// KillAfter is when every process of the container is killed, 0 for never.
	KillAfter time.Duration
}

// Volume is a directory of a container.
type Volume struct {
	Path     string
	ReadOnly bool
	// Shared is the name of the directory, which all containers of a box have that name it; empty:
	// it is the container's own.
	Shared string
	// Mode is that of the directory.
	Mode  uint32
	Files []File
}

// File is a file of a volume.
type File struct {
	Name    string
	Content []byte
	Mode    uint32
}

// End is how a container ended.
type End struct {
	Code int
	// Output is what it has printed, and Message what it has written to its termination log.
	Output, Message string
	// Killed is set if KillAfter came before its end. Took is how long it was at work.
	Killed bool
	Took   time.Duration
}

// Runner runs containers.
type Runner interface {
	// Run returns how a container ended. When ctx ends, every process of the container is killed.
	Run(ctx context.Context, spec Spec) (End, error)
	// Close ends all containers, and leaves nothing of them.
	Close() error
}

// NotStarted is the exit code of a container whose program could not be started, as runc's.
const NotStarted = 128

// longestOutput is how many bytes of a container's output are kept.
const longestOutput = 16 << 20
