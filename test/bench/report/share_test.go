package report

import (
	"math"
	"strings"
	"testing"
)

const said = `# HELP flex_dispatcher_own_seconds x
# TYPE flex_dispatcher_own_seconds histogram
flex_dispatcher_own_seconds_bucket{phase="launch",verb="provision",le="0.01"} 0
flex_dispatcher_own_seconds_bucket{phase="launch",verb="provision",le="0.02"} 4
flex_dispatcher_own_seconds_bucket{phase="launch",verb="provision",le="+Inf"} 4
flex_dispatcher_own_seconds_sum{phase="launch",verb="provision"} 0.06
flex_dispatcher_own_seconds_count{phase="launch",verb="provision"} 4
flex_dispatcher_own_seconds_bucket{phase="confirm",verb="provision",le="0.01"} 2
flex_dispatcher_own_seconds_bucket{phase="confirm",verb="provision",le="0.02"} 3
flex_dispatcher_own_seconds_bucket{phase="confirm",verb="provision",le="+Inf"} 4
flex_dispatcher_own_seconds_sum{phase="confirm",verb="provision"} 1
flex_dispatcher_own_seconds_count{phase="confirm",verb="provision"} 4
# TYPE other counter
other 7
`

func TestReadSharesReturnsTheMedianOfEachPhase(t *testing.T) {
	got, err := ReadShares(strings.NewReader(said))
	if err != nil {
		t.Fatal(err)
	}
	want := []Share{{"confirm", "provision", 4, 0.01}, {"launch", "provision", 4, 0.015}}
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range want {
		if math.Abs(got[i].P50-want[i].P50) > 1e-9 || got[i].Phase != want[i].Phase || got[i].Verb != want[i].Verb || got[i].Runs != want[i].Runs {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
	if sum := (Result{Own: got}).ownShare("provision"); math.Abs(sum-0.025) > 1e-9 {
		t.Errorf("the own share is %v, want 0.025", sum)
	}
}
