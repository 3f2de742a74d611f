package run

import (
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// WithWarnings adds a line to the message. It is for the administrator, who finds it in the Job's
// event whether the run succeeded or not. The claim's user cannot change the login.
func WithWarnings(result Result, warnings []string) Result {
	if len(warnings) > 0 {
		line := oneLine("warning: "+strings.Join(warnings, "; "), contract.MaxMessage/4-len("\n"))
		if result.Message != "" && !strings.HasSuffix(result.Message, "\n") {
			line = "\n" + line
		}
		result.Message += line + "\n"
	}
	return result
}
