// Command kubectl-flex is the plugin of kubectl for people who use or administer flex-provisioner.
// Under the name flex it is the program flex, which scripts call.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/plugin"
	"github.com/flex-provisioner/flex-provisioner/shell"
	"github.com/flex-provisioner/flex-provisioner/try/box"
)

func main() {
	if filepath.Base(os.Args[0]) == "flex" {
		os.Exit(shell.Main(os.Args[1:]))
	}
	box.Main()
	os.Exit(execute())
}

func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the command at once, whatever it cleans up
	err := plugin.Command(time.Now).ExecuteContext(ctx)
	if err != nil && !errors.Is(err, plugin.ErrFound) {
		fmt.Fprintln(os.Stderr, "error:", quote.Indent(err.Error(), len("error: ")))
	}
	return plugin.ExitCode(err)
}
