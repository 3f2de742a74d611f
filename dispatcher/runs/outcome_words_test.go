package runs_test

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

func TestOutcomesAreDescribedInAFewWords(t *testing.T) {
	for want, o := range map[string]runs.Outcome{
		"exit code 75":             {Verdict: contract.TryAgain, ExitCode: new(int32(75))},
		"OOMKilled, exit code 137": {Verdict: contract.TryAgain, ExitCode: new(int32(137)), Reason: "OOMKilled"},
		"DeadlineExceeded":         {Verdict: contract.TryAgain, Reason: "DeadlineExceeded"},
		"its pod was disrupted":    {Verdict: contract.Disrupted, ExitCode: new(int32(137))},
		"its pod no longer exists": {Verdict: contract.Unknown},
		"Unknown, its node does not know how its container ended": {
			Verdict: contract.Unknown, Reason: "Unknown",
		},
		"its container never ran":        {Verdict: contract.TryAgain},
		"exit code 0":                    {Verdict: contract.Done, ExitCode: new(int32(0))},
		"Evicted, exit code 137":         {Verdict: contract.TryAgain, ExitCode: new(int32(137)), Reason: "Evicted"},
		"DeadlineExceeded, exit code 65": {Verdict: contract.TryAgain, ExitCode: new(int32(65)), Reason: "DeadlineExceeded"},
	} {
		if got := o.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
