package shell

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/version"
)

// verb is a subcommand.
type verb struct {
	name, arguments, does string
	// made says that the script may have created a volume when it runs the verb. Codes that promise
	// that nothing was created are not for it: no volume would be looked for when the claim is
	// deleted.
	made bool
	run  func(in *container, arguments []string) error
}

// verbs returns every verb, in the order of a script that uses them.
func verbs() []verb {
	all := []verb{eachVerb, needVerb}
	for _, v := range verdicts {
		all = append(all, v.verb())
	}
	return append(all, pvVerb, secretVerb, noteVerb, grownVerb, emptyVerb, quotaVerb, projectVerb, listVerb)
}

// usageError is a wrong use of the program: nothing was done, and nothing will be until the script
// is corrected.
type usageError struct{ error }

func misused(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// ended is an end with an exit code of the script's own choice, or of the commands that it has run.
// It has been reported.
type ended int

func (e ended) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the verb that the arguments name in the container that it finds around itself, and
// returns the exit code.
func Main(arguments []string) int { return execute(here(), arguments) }

// execute runs the verb that the arguments name, and returns the exit code.
func execute(in *container, arguments []string) int {
	name := ""
	if len(arguments) > 0 {
		name = arguments[0]
	}
	switch name {
	case "--version":
		fmt.Fprintln(in.out, "flex", version.Get())
		return contract.ExitDone
	case "--help", "-h":
		fmt.Fprint(in.out, usage())
		return contract.ExitDone
	}
	for _, v := range verbs() {
		if v.name == name {
			return v.report(v.run(in, arguments[1:]), in.log)
		}
	}
	fmt.Fprintf(in.log, "flex: unknown verb %q\n%s", name, usage())
	return contract.ExitUsage
}

func usage() string {
	var text strings.Builder
	text.WriteString("usage:\n")
	for _, v := range verbs() {
		fmt.Fprintf(&text, "  flex %s %s\n      %s\n", v.name, v.arguments, v.does)
	}
	return text.String()
}

// report prints an error, and returns the exit code that the contract gives it.
func (v verb) report(err error, log io.Writer) int {
	if err == nil {
		return contract.ExitDone
	}
	if code, ok := errors.AsType[ended](err); ok {
		return int(code)
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(log, "flex %s: %s\n", v.name, oneLine(line))
	}
	if _, ok := errors.AsType[usageError](err); ok && !v.made {
		return contract.ExitUsage
	}
	return contract.ExitTempFail
}
