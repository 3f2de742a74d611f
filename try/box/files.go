package box

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endOf returns how a process ended. Its exit code is that which a container runtime gives.
func endOf(state *os.ProcessState, kill *time.Timer) (end End) {
	end.Code = state.ExitCode()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.Code = 128 + int(status.Signal())
	}
	end.Killed = kill != nil && !kill.Stop() && end.Code == 128+int(syscall.SIGKILL)
	return end
}

// directory makes a directory that every user of a container may read, as those of images are.
func directory(name string) error { return os.MkdirAll(name, 0o755) } //nolint:gosec // see above

// nameOf returns the name of a variable.
func nameOf(variable string) string {
	name, _, _ := strings.Cut(variable, "=")
	return name
}

// limited keeps the beginning of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(text []byte) (int, error) {
	if room := longestOutput - l.Len(); room > 0 {
		_, _ = l.Buffer.Write(text[:min(room, len(text))])
	}
	return len(text), nil
}

// prepare writes the files of a container, and puts its volumes in the order of their paths.
func prepare(dir, shared string, spec Spec) error {
	if err := directory(filepath.Join(dir, "volumes")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "message"), nil, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(filepath.Join(dir, "message"), 0o666); err != nil { //nolint:gosec // the container's user writes it
		return err
	}
	slices.SortFunc(spec.Volumes, func(a, b Volume) int { return strings.Compare(a.Path, b.Path) })
	for i, volume := range spec.Volumes {
		at := volume.at(dir, shared, i)
		if err := volume.write(at, spec.GID); err != nil {
			return fmt.Errorf("the volume at %s: %w", volume.Path, err)
		}
		for _, other := range spec.Volumes[i+1:] { // which is mounted there
			below, ok := strings.CutPrefix(other.Path, volume.Path+"/")
			if !ok {
				continue
			}
			if err := directory(filepath.Join(at, below)); err != nil {
				return err
			}
		}
	}
	return nil
}

// at returns where a volume is, outside of its container.
func (v Volume) at(pod, shared string, i int) string {
	if v.Shared != "" {
		return filepath.Join(shared, v.Shared)
	}
	return filepath.Join(pod, "volumes", strconv.Itoa(i))
}

func (v Volume) write(dir string, group int) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		return nil // another container had it before
	}
	for _, file := range v.Files {
		if err == nil {
			err = writeFile(filepath.Join(dir, file.Name), file, group)
		}
	}
	if err != nil {
		return err
	}
	return os.Chmod(dir, os.FileMode(v.Mode))
}

// writeFile writes a file that the container's group may read, as a kubelet does.
func writeFile(name string, file File, group int) error {
	if err := directory(filepath.Dir(name)); err != nil {
		return err
	}
	if err := os.WriteFile(name, file.Content, 0o600); err != nil {
		return err
	}
	if err := os.Lchown(name, 0, group); err != nil && !errors.Is(err, syscall.EINVAL) { // there is one user only
		return err
	}
	return os.Chmod(name, os.FileMode(file.Mode))
}
