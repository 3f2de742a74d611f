package claim

import (
	"slices"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
)

// The pages promise five minutes; it was 256 s.
func TestPausesAfterCancelledRunsEndAtFiveMinutes(t *testing.T) {
	var h hints
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 12 {
		h.cancelled("u", now)
	}
	if got := h.get("u", now).NotBefore.Sub(now); got != 5*time.Minute {
		t.Errorf("the pause after twelve runs is %s", got)
	}
}

func TestHintsOfOneClaimAddUpUntilEachIsTooOld(t *testing.T) {
	var h hints
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	record := decide.RecordOutcome{Run: decide.Run{Name: "provision-u-1"}}
	release := decide.ReleaseRecord{Run: decide.Run{Name: "provision-u-0"}}
	h.put("u", &observe.Hint{Refused: []string{decide.WriteOf(record)}}, now)
	h.put("u", &observe.Hint{Refused: []string{decide.WriteOf(release)}}, now.Add(20*time.Second))
	h.put("u", &observe.Hint{UnseenRevision: "flex/gold-1"}, now.Add(30*time.Second))
	h.put("other", &observe.Hint{UnseenRevision: "flex/gold-2"}, now)
	for _, tt := range []struct {
		after           time.Duration
		record, release bool
		revision        string
		recheck         time.Duration
	}{
		{30 * time.Second, true, true, "flex/gold-1", 30 * time.Second},
		{60 * time.Second, false, true, "flex/gold-1", 20 * time.Second},
		{80 * time.Second, false, false, "flex/gold-1", 0},
		{90 * time.Second, false, false, "", 0},
	} {
		at := now.Add(tt.after)
		got := h.get("u", at)
		if slices.Contains(got.Refused, decide.WriteOf(record)) != tt.record || slices.Contains(got.Refused, decide.WriteOf(release)) != tt.release || got.UnseenRevision != tt.revision {
			t.Errorf("after %s: %+v", tt.after, got)
		}
		if again := h.recheck("u", at, 0); again != tt.recheck {
			t.Errorf("after %s: observed again in %s, want %s", tt.after, again, tt.recheck)
		}
	}
	if got := h.recheck("u", now.Add(30*time.Second), time.Second); got != time.Second {
		t.Errorf("observed again in %s although it was to be in a second", got)
	}
	h.put("u", &observe.Hint{}, now.Add(time.Hour))
	if len(h.byUID) != 1 {
		t.Errorf("%d claims have hints: those that are too old are kept", len(h.byUID))
	}
}
