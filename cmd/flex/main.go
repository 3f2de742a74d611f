package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/version"
)

// verb is a subcommand.
type verb struct {
	name, arguments, does string
	run                   func(arguments []string) error
}

var verbs = []verb{emptyVerb, quotaVerb}

// usageError is a wrong use of the program: nothing was done, and nothing will be until the script
// is corrected.
type usageError struct{ error }

func misused(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

func main() {
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs the verb that the arguments name, and returns the exit code.
func execute(arguments []string, out, log io.Writer) int {
	name := ""
	if len(arguments) > 0 {
		name = arguments[0]
	}
	switch name {
	case "--version":
		fmt.Fprintln(out, "flex", version.Get())
		return contract.ExitDone
	case "--help", "-h":
		fmt.Fprint(out, usage())
		return contract.ExitDone
	}
	for _, v := range verbs {
		if v.name == name {
			return report(name, v.run(arguments[1:]), log)
		}
	}
	fmt.Fprintf(log, "flex: unknown verb %q\n%s", name, usage())
	return contract.ExitUsage
}

func usage() string {
	var text strings.Builder
	text.WriteString("usage:\n")
	for _, v := range verbs {
		fmt.Fprintf(&text, "  flex %s %s\n      %s\n", v.name, v.arguments, v.does)
	}
	return text.String()
}

// report prints an error, and returns the exit code that the contract gives it.
func report(name string, err error, log io.Writer) int {
	if err == nil {
		return contract.ExitDone
	}
	fmt.Fprintf(log, "flex %s: %v\n", name, err)
	if _, is := errors.AsType[usageError](err); is {
		return contract.ExitUsage
	}
	return contract.ExitTempFail
}
