package main

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The exit code is one of the contract, not cobra's.
func TestWrongUseHasAnExitCodeOfTheContract(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
		text string
	}{
		"no verb":       {nil, contract.ExitUsage, ""},
		"unknown verb":  {[]string{"destroy"}, contract.ExitUsage, "destroy"},
		"unknown flag":  {[]string{"provision", "--fast"}, contract.ExitUsage, "--fast"},
		"too much":      {[]string{"provision", "now"}, contract.ExitUsage, "now"},
		"no request":    {[]string{"provision", "--dir", "testdata", "--namespace", "x"}, contract.ExitUsage, "read the request"},
		"outside a pod": {[]string{"provision"}, contract.ExitConfig, "find the pod's namespace"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			result := execute(t.Context(), tc.args)
			if result.Code != tc.code || !strings.Contains(result.Message, tc.text) {
				t.Errorf("%+v", result)
			}
		})
	}
}
