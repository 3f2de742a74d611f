package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// docs/contract.md promises this schedule.
func TestBackoffDoublesToItsCap(t *testing.T) {
	want := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}
	for i, seconds := range want {
		if got := exponential(i + 1).Seconds(); got != float64(seconds) {
			t.Errorf("after attempt %d: %v s, want %d s", i+1, got, seconds)
		}
	}
	if got := exponential(1 << 20); got != 5*time.Minute {
		t.Errorf("after very many attempts: %s", got)
	}
}

// It counts as no attempt. One that is cancelled each time would be launched every second.
func TestARunThatNeverRanIsBackedOffFrom(t *testing.T) {
	for number, want := range map[int]time.Duration{1: time.Second, 3: 4 * time.Second} {
		if got := pauseAfter(contract.NotStarted, 0, number); got != want {
			t.Errorf("after run %d: %s, want %s", number, got, want)
		}
	}
}
