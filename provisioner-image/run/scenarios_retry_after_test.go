package run_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// A run waits for a request that was certainly not executed, if the pause is short and not repeated
// too often. Otherwise the run ends, and the claim's user is shown the time.
func TestRunWaitsAsLongAsCinderAsks(t *testing.T) {
	const s = time.Second
	tests := map[string]struct {
		method  string
		status  int
		after   string
		refused int
		waits   []time.Duration
		code    int
	}{
		"a create, once":                     {http.MethodPost, 429, "7", 1, []time.Duration{7 * s}, contract.ExitDone},
		"a create, three times":              {http.MethodPost, 429, "30", 3, []time.Duration{30 * s, 30 * s, 30 * s}, contract.ExitDone},
		"a create, four times":               {http.MethodPost, 429, "7", 4, []time.Duration{7 * s, 7 * s, 7 * s}, contract.ExitUnavailable},
		"a create, for long":                 {http.MethodPost, 429, "31", 1, nil, contract.ExitUnavailable},
		"a create, until a date":             {http.MethodPost, 429, "Fri, 20 Nov 2026 12:00:00 GMT", 1, nil, contract.ExitUnavailable},
		"a create, for no time":              {http.MethodPost, 429, "0", 1, nil, contract.ExitUnavailable},
		"a create that may have been served": {http.MethodPost, 503, "7", 1, nil, contract.ExitUnavailable},
		"a look":                             {http.MethodGet, 503, "7", 1, []time.Duration{7 * s}, contract.ExitDone},
		"a look, broken":                     {http.MethodGet, 500, "7", 1, nil, contract.ExitUnavailable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			refused := 0
			w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
				if r.Method != tc.method || !strings.Contains(r.URL.Path, "/volumes") || refused == tc.refused {
					return nil
				}
				refused++
				return &cindertest.Reply{Status: tc.status, Header: map[string]string{"Retry-After": tc.after}}
			}
			result := w.provision(t)
			w.wantCode(t, result, tc.code)
			if !slices.Equal(w.waits, tc.waits) {
				t.Errorf("waited %v, want %v", w.waits, tc.waits)
			}
			if claim := contract.ForClaim(result.Message); tc.code != contract.ExitDone && tc.after != "0" && !strings.Contains(claim, tc.after) {
				t.Errorf("the claim is told %q, want the time %s in it", claim, tc.after)
			}
			if all := w.cinder.Volumes(); tc.code == contract.ExitDone && len(all) != 1 {
				t.Errorf("volumes %s", fmt.Sprint(all))
			}
		})
	}
}
