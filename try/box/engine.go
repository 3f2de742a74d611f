package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Engine runs the images of containers by a container engine, podman or docker. Its volumes are
// directories below Dir.
type Engine struct {
	Path string // of the engine's program
	Dir  string

	calls atomic.Int64
}

// NewEngine returns an Engine with a directory of its own.
func NewEngine(path string) (*Engine, error) {
	dir, err := os.MkdirTemp("", "flex-try-")
	return &Engine{Path: path, Dir: dir}, err
}

// Run runs a container to its end.
func (e *Engine) Run(ctx context.Context, spec Spec) (end End, err error) {
	number := strconv.FormatInt(e.calls.Add(1), 10)
	pod := filepath.Join(e.Dir, "pods", number)
	defer func() { err = errors.Join(err, e.remove(pod)) }()
	if err := directory(filepath.Join(e.Dir, "shared")); err != nil {
		return end, err
	}
	if err := prepare(pod, filepath.Join(e.Dir, "shared"), spec); err != nil {
		return end, err
	}
	name := filepath.Base(e.Dir) + "-" + number
	ended := context.WithoutCancel(ctx)                                        // the engine ends the container, and then itself
	cmd := exec.CommandContext(ended, e.Path, e.arguments(name, pod, spec)...) //nolint:gosec // the engine that the user has installed
	cmd.Env = append(os.Environ(), spec.Env...)
	var out limited
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return end, fmt.Errorf("start %s: %w", e.Path, err)
	}
	done := make(chan struct{})
	kill := func() { e.kill(ended, name, done) }
	defer context.AfterFunc(ctx, kill)()
	var timer *time.Timer
	if spec.KillAfter > 0 {
		timer = time.AfterFunc(spec.KillAfter, kill)
	}
	_ = cmd.Wait() // the state says how it ended
	close(done)
	end = endOf(cmd.ProcessState, timer)
	end.Took, end.Output = time.Since(began), out.String()
	message, err := os.ReadFile(filepath.Join(pod, "message"))
	end.Message = string(message)
	return end, err
}

// kill kills a container, as soon as the engine has started it.
func (e *Engine) kill(ctx context.Context, name string, done <-chan struct{}) {
	for exec.CommandContext(ctx, e.Path, "kill", name).Run() != nil { //nolint:gosec // as above
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// arguments returns those of the engine. The values of variables are in its environment: every
// process of a machine may read the arguments of the others.
func (e *Engine) arguments(name, pod string, spec Spec) []string {
	out := []string{
		"run", "--rm", "--name=" + name, "--network=host", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges",
		fmt.Sprintf("--user=%d:%d", spec.UID, spec.GID), "--volume=" + filepath.Join(pod, "message") + ":/dev/termination-log",
	}
	for _, one := range spec.CapsAdded {
		out = append(out, "--cap-add="+one)
	}
	for _, variable := range spec.Env {
		if name := nameOf(variable); name != "PATH" { // that of the image
			out = append(out, "--env="+name)
		}
	}
	for i, volume := range spec.Volumes {
		mount := volume.at(pod, filepath.Join(e.Dir, "shared"), i) + ":" + volume.Path
		if volume.ReadOnly {
			mount += ":ro"
		}
		out = append(out, "--volume="+mount)
	}
	if spec.Dir != "" {
		out = append(out, "--workdir="+spec.Dir)
	}
	arguments := spec.Args
	if len(spec.Command) > 0 {
		out = append(out, "--entrypoint="+spec.Command[0])
		arguments = slices.Concat(spec.Command[1:], spec.Args)
	}
	return append(append(out, spec.Image), arguments...)
}

// remove deletes a directory. Where the engine runs without root, a container's files belong to users
// of its own namespace, whom podman can stand for.
func (e *Engine) remove(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if err := exec.Command(e.Path, "unshare", "rm", "-rf", dir).Run(); err != nil { //nolint:gosec,noctx // its own directory, also after an interrupt
		return fmt.Errorf("the files of containers are left. Remedy: sudo rm -r %s", e.Dir)
	}
	return nil
}

// Close deletes what is left of the containers.
func (e *Engine) Close() error { return e.remove(e.Dir) }
