package run_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
)

// ended returns how a batch of n claims ended, each with an error of so many bytes. The texts have
// characters that JSON writes as more than one.
func ended(n, size int) []run.Ended {
	all := make([]run.Ended, n)
	for i := range all {
		all[i].Task = input.Task{Verb: contract.Provision, Request: contract.Request{UID: uidOf(i)}, Shared: true}
		all[i].Task.Login.Warnings = []string{strings.Repeat("warned ", 100)}
		if size > 0 {
			all[i].Err = &input.Error{Code: contract.ExitBadRequest, Err: errors.New(strings.Repeat(`"<ü>" `, size/7))}
		}
	}
	return all
}

// The kubelet keeps so many bytes, and the dispatcher takes a message that is as long for one that
// is cut off.
func TestResultsOfTheLargestBatchFitIntoTheMessage(t *testing.T) {
	for _, n := range []int{2, 16, 32, contract.MaxBatch} {
		for _, size := range []int{0, 7, 70, 700, 7000} {
			t.Run(fmt.Sprintf("%d of %d bytes", n, size), func(t *testing.T) {
				result := run.JudgeAll(ended(n, size))
				if got := codes(result.Message); len(got) != n || len(result.Message) >= contract.MaxMessage {
					t.Errorf("%d results in %d bytes", len(got), len(result.Message))
				}
				if !strings.Contains(result.Message, "\nwarning: warned") {
					t.Error("no warning")
				}
				if shown := said(result.Message, n-1); n == 2 && size == 700 && len(shown) < 500 {
					t.Errorf("only %d bytes of a message are shown: %s", len(shown), shown)
				}
			})
		}
	}
}

// One request has no lines of results, as every image without batches.
func TestOneRequestIsJudgedByItself(t *testing.T) {
	one := ended(1, 70)
	one[0].Task.Shared = false
	if result := run.JudgeAll(one); result.Code != contract.ExitBadRequest || len(codes(result.Message)) != 0 || contract.ForClaim(result.Message) == "" {
		t.Errorf("%+v", result)
	}
}
