// Command flex-dispatcher watches claims and launches provisioning containers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json

	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

func main() { os.Exit(execute()) }

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer logs.FlushLogs()
	cmd, err := command().ExecuteContextC(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", quote.Error(err))
	}
	return exitCode(cmd, err)
}

// exitCode returns the code with which a command ends.
func exitCode(cmd *cobra.Command, err error) int {
	switch {
	case err == nil:
		return 0
	case cmd.Name() == auditName && !errors.As(err, new(run.FindingsError)):
		return 2
	default:
		return 1
	}
}

// endsWhenAsked returns the error of a command that goes on until it is asked to end, nil once it
// was.
func endsWhenAsked(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil
	}
	return err
}
