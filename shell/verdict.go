package shell

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// verdict is an end that a script chooses.
type verdict struct {
	name string
	code int
	// forUser says that the reason is for the claim's user. Of a config and of a login only the
	// administrator reads.
	forUser bool
	does    string
}

var misconfigured = verdict{"misconfigured", contract.ExitConfig, false, "say to the administrator what is wrong with the config, before anything is created"}

var verdicts = []verdict{
	{"refuse", contract.ExitBadRequest, true, "say to the claim's user why this claim cannot be served as it is"},
	{"full", contract.ExitCapacity, true, "say to the claim's user that there is no room, or that a quota is used up"},
	{"again", contract.ExitTempFail, true, "say to the claim's user why this failed, and is tried again"},
	misconfigured,
	{"denied", contract.ExitNoPerm, false, "say to the administrator which credentials were refused, before anything is created"},
}

func (v verdict) verb() verb {
	return verb{
		name: v.name, arguments: "TEXT", does: fmt.Sprintf("%s; exit code %d", v.does, v.code),
		run: v.end,
	}
}

// end prints the reason and ends with the verdict's code, also without a reason: a script whose
// variable is empty means the verdict all the same.
func (v verdict) end(in *container, texts []string) error {
	line := cmp.Or(oneLine(strings.Join(texts, " ")), "the provisioner gives no reason") + "\n"
	if v.forUser {
		line = contract.ClaimPrefix + strings.TrimPrefix(line, contract.ClaimPrefix)
	}
	fmt.Fprint(in.log, line)
	// The log is the message only if there is no other one.
	if info, err := os.Stat(in.messagePath()); err == nil && info.Size() > 0 {
		if err := in.addMessage(line); err != nil {
			fmt.Fprintf(in.log, "flex %s: %v\n", v.name, err)
		}
	}
	return ended(v.code)
}
