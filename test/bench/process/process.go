package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// components of the control plane that are measured.
var components = []string{"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler"}

// Grace is how long a provisioner may take to end.
const Grace = 5 * time.Second

// Program is a process of a provisioner's.
type Program struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Wait waits until the process has ended.
func (p *Program) Wait() { <-p.ended }

// Start starts a process that ends with the context. Its output goes to a file.
func Start(ctx context.Context, file, output string, args ...string) (*Program, error) {
	log, err := os.Create(output)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd := exec.CommandContext(ctx, file, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = Grace
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", file, err)
	}
	p := &Program{cmd, make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // how it ended is in its log
	}()
	return p, nil
}

// Running reports an error if a program has ended.
func Running(programs []*Program) error {
	for _, p := range programs {
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: see its log", filepath.Base(p.cmd.Path))
		default:
		}
	}
	return nil
}

// Sample is what a process has used since its start.
type Sample struct {
	name string
	used report.Process
}

// Samples looks at the control plane and the provisioner.
func Samples(state string, programs []*Program) ([]Sample, error) {
	var out []Sample
	for _, name := range components {
		text, err := os.ReadFile(filepath.Join(state, "pids", name))
		if err != nil {
			return nil, err
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return nil, fmt.Errorf("the process of %s: %w", name, err)
		}
		used, err := usedBy(name, pid)
		if err != nil {
			return nil, err
		}
		out = append(out, Sample{name, used})
	}
	for _, p := range programs {
		used, err := usedBy(report.Provisioner, p.cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		out = append(out, Sample{strconv.Itoa(p.cmd.Process.Pid), used})
	}
	return out, nil
}

func usedBy(name string, pid int) (report.Process, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return report.Process{}, err
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return report.Process{}, err
	}
	return parseUsed(name, string(stat), string(status))
}

// ticks a second in /proc, on every Linux of today.
const ticks = 100

// parseUsed reads the texts of /proc/PID/stat and /proc/PID/status. The name in the first may
// contain spaces and parentheses.
func parseUsed(name, stat, status string) (report.Process, error) {
	const user, system = 11, 12 // counted from the state, which follows the name
	out := report.Process{Name: name}
	words := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(words) <= system {
		return out, errors.New("/proc/PID/stat has another format")
	}
	for _, at := range []int{user, system} {
		n, err := strconv.ParseFloat(words[at], 64)
		if err != nil {
			return out, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		out.CPU += n / ticks
	}
	out.RSS, out.Peak = mebibytes(status, "VmRSS:"), mebibytes(status, "VmHWM:")
	return out, nil
}

func mebibytes(status, field string) float64 {
	for line := range strings.Lines(status) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == field {
			kib, _ := strconv.ParseFloat(words[1], 64)
			return kib / 1024
		}
	}
	return 0
}

// Since returns what was used between two samples.
func Since(before, after []Sample) []report.Process {
	earlier := map[string]float64{}
	for _, s := range before {
		earlier[s.name] = s.used.CPU
	}
	var out []report.Process
	for _, s := range after {
		s.used.CPU -= earlier[s.name]
		out = append(out, s.used)
	}
	return out
}
