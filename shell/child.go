package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const (
	// tailBytes and tailLines are what the message of a run alone has of its log.
	tailBytes, tailLines = 2048, 80
	// longestLine is where a line of a command's output is split.
	longestLine = 16 << 10
	// afterwards is how long the output of a command that has ended is read: what it has left in the
	// background does not hold up the others.
	afterwards = 2 * time.Second
)

// serve runs the command for one request, and returns what became of it. It returns nil if the run
// was stopped before the request was done: the dispatcher sees why, and does not count the attempt.
func (b *batch) serve(ctx context.Context, i int) *contract.Result {
	if ctx.Err() != nil {
		return nil
	}
	output := &output{batch: b, prefix: b.requests[i].PVName + ": "}
	if b.missing != "" {
		output.line(b.missing)
		result := contract.NewResult(b.requests[i].UID, contract.ExitConfig)
		result.Message = b.missing
		return &result
	}
	home := filepath.Join(b.dir, b.requests[i].UID)
	message := home + ".message"
	code, err := b.start(ctx, i, home, message, output)
	defer b.leave(home, message, output)
	if err != nil {
		code, message = contract.ExitTempFail, ""
		output.line("the command cannot be started: " + oneLine(err.Error()))
	}
	if code != contract.ExitDone && ctx.Err() != nil {
		return nil
	}
	result := contract.NewResult(b.requests[i].UID, int32(code))
	said, _ := os.ReadFile(message)
	if len(bytes.TrimSpace(said)) == 0 && code != contract.ExitDone {
		said = []byte(strings.Join(output.tail, "\n"))
	}
	result.Message, result.Capacity = digest(said, code)
	return &result
}

// leave deletes the files of a command. It enters no file system that the command has left mounted
// there, as os.RemoveAll would: that may be one with the volumes of all claims.
func (b *batch) leave(home, message string, output *output) {
	_ = os.Remove(message)
	if err := emptyOne(home); err != nil {
		output.line(oneLine(err.Error()))
	}
}

// start runs the command to its end, in a directory of its own, so that names that it has fixed are
// not those of another request. It is a process group of its own, so that a signal reaches
// what a script has started, too: a shell that waits passes none on.
func (b *batch) start(
	ctx context.Context, i int, home, message string, to *output,
) (code int, err error) {
	if err := os.Mkdir(home, 0o700); err != nil {
		return 0, err
	}
	if err := os.WriteFile(message, nil, 0o600); err != nil {
		return 0, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer read.Close()
	cmd := exec.CommandContext(ctx, b.path, b.command[1:]...) //nolint:gosec // it is the script's own command
	cmd.Args[0] = b.command[0]
	cmd.Env = b.environment(i, home, message)
	cmd.Dir = home
	cmd.Stdout, cmd.Stderr = write, write
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	err = cmd.Start()
	_ = write.Close() // the command has its own
	if err != nil {
		return 0, err
	}
	all := make(chan struct{})
	go func() {
		defer close(all)
		_, _ = io.Copy(to, read)
	}()
	_ = cmd.Wait() // the state of the process says how it ended
	_ = read.SetReadDeadline(time.Now().Add(afterwards))
	<-all
	to.end()
	return exitCode(cmd.ProcessState), nil
}

// exitCode returns the exit code of a process as a shell has it.
func exitCode(of *os.ProcessState) int {
	if status, ok := of.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return of.ExitCode()
}

// digest returns of a termination message what the result of one request has: the lines for the
// claim's user, of a failure the last other line, and the capacity that a result in it has.
func digest(said []byte, code int) (message string, capacity contract.Capacity) {
	var lines []string
	last := ""
	for line := range strings.Lines(string(said)) {
		results := contract.DecodeResults(line)
		line = oneLine(line)
		switch {
		case len(results) > 0:
			capacity = results[0].Capacity
		case strings.HasPrefix(line, contract.ClaimPrefix):
			lines = append(lines, line)
		case line != "":
			last = line
		}
	}
	if code != contract.ExitDone && last != "" {
		lines = append(lines, last)
	}
	return strings.Join(lines, "\n"), capacity
}

// output is the output of one command. Its lines go to the log, and the last ones are kept.
type output struct {
	batch  *batch
	prefix string
	rest   []byte // without a line break yet
	tail   []string
	size   int // of the tail
}

// Write never fails: a command's output does not make it fail.
func (o *output) Write(text []byte) (int, error) {
	o.rest = append(o.rest, text...)
	for {
		line, rest, found := bytes.Cut(o.rest, []byte("\n"))
		if !found && len(o.rest) < longestLine {
			return len(text), nil
		}
		if !found {
			line, rest = o.rest, nil
		}
		o.line(string(line))
		o.rest = rest
	}
}

// end prints what has no line break.
func (o *output) end() {
	if len(o.rest) > 0 {
		o.line(string(o.rest))
		o.rest = nil
	}
}

func (o *output) line(line string) {
	o.tail = append(o.tail, line)
	o.size += len(line) + 1
	for len(o.tail) > 1 && (o.size > tailBytes || len(o.tail) > tailLines) {
		o.size -= len(o.tail[0]) + 1
		o.tail = o.tail[1:]
	}
	o.batch.mu.Lock()
	defer o.batch.mu.Unlock()
	fmt.Fprintln(o.batch.in.out, o.prefix+line)
}
