package run

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

const name = "run-uid-1"

// answers are all that a claim may say about a Job, by what it means for the gate of that Job.
func answers() map[string]decide.Action {
	own, other := decide.Run{Name: name}, decide.Run{Name: "another"}
	return map[string]decide.Action{
		"needed":            decide.Confirm{Run: own},
		"unneeded":          decide.Cancel{Run: own, UnlessNeeded: true},
		"doomed":            decide.Cancel{Run: own},
		"ended":             decide.RecordOutcome{Run: own},
		"noted":             decide.AnnounceReschedule{Run: own},
		"kept":              decide.KeepVolume{Run: own},
		"released":          decide.ReleaseRecord{Run: own},
		"waits":             decide.Wait{},
		"reports":           decide.ReportProblem{},
		"writes":            decide.KeepVolume{},
		"not observed":      nil,
		"another confirmed": decide.Confirm{Run: other},
		"another cancelled": decide.Cancel{Run: other},
		"another ended":     decide.RecordOutcome{Run: other},
		"another released":  decide.ReleaseRecord{Run: other},
	}
}

// TestEveryAnswerOfThreeClaimsKeepsTheLaws asks three claims, each of which may say anything.
func TestEveryAnswerOfThreeClaimsKeepsTheLaws(t *testing.T) {
	all, seen := answers(), map[Action]int{}
	for _, job := range []Job{{Name: name}, {Name: name, Deletes: true}} {
		for a, first := range all {
			for b, second := range all {
				for c, third := range all {
					said := map[string]int{}
					for _, kind := range []string{a, b, c} {
						said[kind]++
					}
					action := Decide(job, []decide.Action{first, second, third})
					seen[action]++
					if wrong := wrongWith(job, action, said); wrong != "" {
						t.Errorf("deletes=%t: %s, %s, %s: %d %s", job.Deletes, a, b, c, action, wrong)
					}
				}
			}
		}
	}
	for action := range Unneeded + 1 {
		if seen[action] == 0 {
			t.Errorf("no answers lead to %d", action)
		}
	}
}

// wrongWith returns which law an action breaks, or nothing.
func wrongWith(job Job, action Action, said map[string]int) string {
	mine, noted := said["needed"]+said["unneeded"], said["noted"]+said["kept"]
	first := said["doomed"] + said["ended"]
	mixed := job.Deletes && said["needed"] > 0 && said["unneeded"] > 0
	for _, law := range []struct {
		wrong string
		of    Action
		is    bool
	}{
		{"opens the gate before all have said that it may, or for none", Open, mine != 3 || said["needed"] == 0},
		{"deletes the volume of a claim that does not say so", Open, mixed},
		{"cancels a Job that no claim wants cancelled", Cancel, said["doomed"] == 0},
		{"cancels a Job that a claim may need", Unneeded, said["unneeded"] != 3},
		{"records what has not ended, or is cancelled", Record, said["ended"] == 0 || said["doomed"] > 0},
		{"releases what is needed, or before something else", Release, said["released"] == 0 || first+noted > 0},
		{"notes nothing, or before something else", Note, noted == 0 || first > 0},
		{"waits for nothing", Wait, first+noted+said["released"] > 0 || mine == 3 && !mixed},
	} {
		if action == law.of && law.is {
			return law.wrong
		}
	}
	return ""
}

func TestAJobWithoutClaimsWaits(t *testing.T) {
	if action := Decide(Job{Name: name, Deletes: true}, nil); action != Wait {
		t.Errorf("got %d", action)
	}
}
