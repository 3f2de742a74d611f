package mutants_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// whyNotPassed returns why the output and the end of a run do not show that all tests have passed,
// or nil. A run that was killed, that took too long, or in which a test was not found has no line
// that says FAIL.
func whyNotPassed(tests []string, said string, ended error) error {
	if ended != nil {
		return fmt.Errorf("the run has ended with: %w", ended)
	}
	for _, test := range tests {
		if !strings.Contains("\n"+said, "\n--- PASS: "+test+" (") {
			return fmt.Errorf("%s has not passed: it was not run, or skipped", test)
		}
	}
	return nil
}

func TestOnlyTestsThatHaveRunToTheirEndHavePassed(t *testing.T) {
	t.Parallel()
	const one, two = "=== RUN   TestOne\n--- PASS: TestOne (0.01s)\n", "--- PASS: TestTwo (1.00s)\n"
	for name, test := range map[string]struct {
		said  string
		ended error
		is    bool
	}{
		"both have passed":           {said: one + two + "PASS\n", is: true},
		"there are no such tests":    {said: "testing: warning: no tests to run\nPASS\n"},
		"one of them was not found":  {said: one + "PASS\n"},
		"one of them was skipped":    {said: one + "--- SKIP: TestTwo (0.00s)\nPASS\n"},
		"only a test with more":      {said: one + "--- PASS: TestTwoMore (0.00s)\nPASS\n"},
		"only a part of one":         {said: one + "    --- PASS: TestTwo (0.00s)\nPASS\n"},
		"the run was killed":         {said: one + two, ended: errors.New("signal: killed")},
		"another test took too long": {said: one + two + "panic: test timed out after 10m0s\n", ended: errors.New("exit status 2")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := whyNotPassed([]string{"TestOne", "TestTwo"}, test.said, test.ended); (err == nil) != test.is {
				t.Errorf("it has passed: %t, but: %v", test.is, err)
			}
		})
	}
}
