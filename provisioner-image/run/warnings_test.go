package run_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
)

// A warning changes neither the exit code nor what the claim's user and the dispatcher read in the
// message.
func TestWarningsAreForTheAdministrator(t *testing.T) {
	const grown = `{"uid":"1","code":0,"capacity":"2Gi"}`
	failure := errors.New(strings.Repeat("long ", contract.MaxMessage))
	for name, result := range map[string]run.Result{
		"success":            run.Judge(input.Task{}, run.Report{}, nil),
		"success with words": run.Judge(input.Task{}, run.Report{Message: grown}, nil),
		"failure":            run.Judge(input.Task{}, run.Report{}, failure),
	} {
		t.Run(name, func(t *testing.T) {
			got := run.WithWarnings(result, []string{"a", "b", strings.Repeat("c", contract.MaxMessage)})
			if got.Code != result.Code || contract.ForClaim(got.Message) != contract.ForClaim(result.Message) || len(got.Message) > contract.MaxMessage {
				t.Errorf("%+v", got)
			}
			if !strings.HasPrefix(got.Message, result.Message) || !strings.Contains("\n"+got.Message, "\nwarning: a; b; c") {
				t.Errorf("message %q", got.Message)
			}
			if same := run.WithWarnings(result, nil); same != result {
				t.Errorf("without warnings: %+v", same)
			}
		})
	}
	if got := run.WithWarnings(run.Result{Message: grown}, []string{"a"}); contract.DecodeResults(strings.SplitN(got.Message, "\n", 2)[0]) == nil {
		t.Errorf("the result of an expand is lost: %q", got.Message)
	}
}
