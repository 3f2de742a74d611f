package decide

import (
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// cameBack is the view of a claim that has come back to the node n1, which had no room a moment
// ago. n2 may have room.
func cameBack(ago time.Duration, count int, since time.Duration) View {
	p := recorded(run(contract.Provision, 1), contract.NoCapacity, ago)
	p.Published, p.Reschedule, p.Returns = true, RescheduleDone, jobs.Returns{Count: count, At: now.Add(-since)}
	d := recorded(run(contract.Delete, 1), contract.Done, ago)
	d.After, d.Held = 1, false
	t := Target{
		Revision: "r1", Hash: "h1", Node: "n1", RevisionStored: true, HasSlot: true, Supported: true, NodeSelected: true, OtherNodes: []string{"n2"},
	}
	return View{Now: now, Claim: ClaimPending, Provision: t, Delete: deleteTargets()[1], Runs: []Run{p, d}}
}

func TestAReturnWithoutARunWaitsTwiceAsLongAsTheOneBefore(t *testing.T) {
	for count, least := range map[int]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 8 * time.Second} {
		early, due := cameBack(time.Minute, count, least-time.Millisecond), cameBack(time.Minute, count, least)
		if wait, waits := Decide(early).(Wait); !waits || !wait.Until.Equal(now.Add(time.Millisecond)) {
			t.Errorf("%v after return %d: %#v, want a wait of a millisecond", least-time.Millisecond, count, Decide(early))
		}
		if a, announces := Decide(due).(AnnounceReschedule); !announces || a.Returns != (jobs.Returns{Count: count + 1, At: now}) {
			t.Errorf("%v after return %d: %#v, want return %d", least, count, Decide(due), count+1)
		}
	}
}

func TestWhatKeepsAClaimOnAFullNode(t *testing.T) {
	tests := map[string]func(*View){
		"no other node":                      func(v *View) { v.Provision.OtherNodes = nil },
		"the next return after the next run": func(v *View) { v.Runs[0].Returns = jobs.Returns{Count: 10, At: now.Add(-time.Minute)} },
		"the other is full, too": func(v *View) {
			q := recorded(run(contract.Provision, 0), contract.NoCapacity, 2*time.Minute)
			q.Node, q.Held = "n2", false
			v.Runs = append(v.Runs, q)
		},
	}
	for name, change := range tests {
		v := cameBack(time.Minute, 1, time.Minute)
		change(&v)
		if wait, waits := Decide(v).(Wait); !waits || !wait.Until.Equal(now.Add(4*time.Minute)) {
			t.Errorf("%s: %#v, want a wait until the node is tried again", name, Decide(v))
		}
	}
}

func TestWhatLetsAClaimBeTriedOnItsNodeAtOnce(t *testing.T) {
	tests := map[string]func(*View){
		"the node had no room long ago": func(v *View) { *v = cameBack(fullPause, 1, time.Minute) },
		"it asks for less":              func(v *View) { v.Provision.Hash = "h2" },
		"another config serves it":      func(v *View) { v.Provision.Revision = "r2" },
	}
	for name, change := range tests {
		v := cameBack(time.Minute, 1, time.Minute)
		change(&v)
		if launch, launches := Decide(v).(Launch); !launches || launch.Verb != contract.Provision {
			t.Errorf("%s: %#v, want a provision", name, Decide(v))
		}
	}
}

// What a node said 5 minutes ago holds no longer.
func TestAnotherNodeIsOpenAgainAfterItsPause(t *testing.T) {
	v := cameBack(time.Minute, 1, time.Minute)
	q := recorded(run(contract.Provision, 0), contract.NoCapacity, fullPause)
	q.Node, q.Held = "n2", false
	v.Runs = append(v.Runs, q)
	if _, announces := Decide(v).(AnnounceReschedule); !announces {
		t.Errorf("%#v, want a return: the node n2 had no room 5 minutes ago", Decide(v))
	}
}
