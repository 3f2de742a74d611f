package shell

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// messagePath returns the file of the termination message. The command of one request of a batch
// has one of its own.
func (in *container) messagePath() string {
	return cmp.Or(in.property(contract.PropTerminationLog), contract.TerminationLog)
}

// setMessage replaces the termination message. A new message is first written over the old one, so
// that a process that is killed in between has lost no line.
func (in *container) setMessage(text string) error {
	if len(text) >= contract.MaxMessage {
		return fmt.Errorf("the termination message would have %d bytes, and only %d are kept", len(text), contract.MaxMessage)
	}
	file, err := os.OpenFile(in.messagePath(), os.O_WRONLY|os.O_CREATE, 0o644) //nolint:gosec // the kubelet reads it
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	if err := file.Truncate(int64(len(text))); err != nil {
		return err
	}
	return file.Close()
}

// addMessage appends a line to the termination message.
func (in *container) addMessage(line string) error {
	file, err := os.OpenFile(in.messagePath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644) //nolint:gosec // the kubelet reads it
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := io.WriteString(file, line); err != nil {
		return err
	}
	return file.Close()
}
