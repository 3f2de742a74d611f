package model

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// hard is what Kubernetes does, and what happens to leaders, in hard worlds only.
type hard struct {
	// replaces: the Job controller makes another pod for one that has vanished before it was
	// counted, see fakecluster.Worlds. Without it the Job fails.
	replaces bool
	// forgetful: the object of a deleted Job goes, although the container of its pod that was
	// deleted by force may run.
	forgetful bool
	// kills: a leader dies after a write, and what it was to emit is lost. An answer that is lost
	// does the same.
	kills bool
}

// hardWorlds are explored beside the others, and are the same in the full model. In each the rules
// broke a law when it was written.
func hardWorlds() []world {
	return []world{
		{name: "vanished pods", verbs: "provision,delete", acts: strips, most: 1, states: 20_000, hard: hard{replaces: true}},
		{name: "forgotten Jobs", verbs: "provision,delete", acts: disturbs, most: 1, states: 10_000, hard: hard{forgetful: true}},
		{
			name: "forgotten Jobs, grown", verbs: "provision,delete,expand", inUse: true, grows: true, acts: disturbs, most: 1, states: 10_000,
			hard: hard{forgetful: true},
		},
		{name: "killed leaders", verbs: "provision", retain: true, acts: rescues, most: 1, fails: 1, states: 10_000, hard: hard{kills: true}},
		{name: "by hand", verbs: "provision,delete", acts: byHand, most: 1, fails: 1, states: 20_000},
		{name: "by hand, retained", verbs: "provision,delete", retain: true, acts: byHand, most: 1, fails: 1, states: 20_000},
		{name: "named PVs", verbs: "provision,delete", acts: names, fails: 1, states: 10_000},
		{name: "clones", verbs: "provision,delete", acts: clones, most: 1, fails: 1, states: 10_000},
		{name: "replaced sources", verbs: "provision,delete", copies: true, acts: clones, most: 1, fails: 1, states: 20_000},
	}
}

// hardSteps are what people do in hard worlds.
func hardSteps() []step {
	return []step{
		{"the administrator strips a pod and deletes it by force", stripping},
		act(byHand, "the administrator writes the UID's PV by hand without marks", func(_ *world, s *state) bool {
			return !s.pv.exists() && s.storage != nothing && s.claim == claimPending
		}, func(w *world, s *state) {
			w.writePV(s, s.config)
			s.pv.bare, s.pv.retain, s.pv.finalizer = true, true, false
		}),
		once("the administrator deletes the PV that he wrote without marks", func(_ *world, s *state) bool {
			return s.pv.bare && s.pv.phase == released && !s.pv.terminating
		}, func(_ *world, s *state) { s.pv.terminating = true }),
		act(clones, "the user asks for a copy", func(_ *world, s *state) bool { return s.claim == claimPending && s.source == 0 },
			func(_ *world, s *state) {
				s.source = 1
				s.touchClaim()
			}),
		act(clones, "the user replaces the source of the copy", func(_ *world, s *state) bool { return s.claim == claimPending && s.source == 1 },
			func(_ *world, s *state) { s.source = 2 }),
	}
}

// replacing is what the Job controller does in hard worlds only.
const replacing = "the Job controller makes another pod for one that has vanished"

// stripping lets each pod vanish. A container that works goes on, and no object shows it.
func stripping(w *world, s state, next func(state)) {
	if w.acts&strips == 0 || s.acts == w.most {
		return
	}
	s.acts++
	onJobs("", func(s *state, j *job) bool {
		return (j.pod == podWaiting || j.pod == podRunning || j.pod == podDone) && !j.orphan && !j.terminating && s.count() < maxJobs
	}, func(_ *world, s *state, i int) { s.vanish(i) }).take(w, s, next)
}

// vanish removes the pod of a Job. Its container becomes one of a Job that no object shows.
func (s *state) vanish(i int) {
	j := &s.jobs[i]
	if j.runs() {
		unseen := *j
		unseen.orphan, unseen.terminating, unseen.held, unseen.kept, unseen.gated = true, true, false, false, false
		unseen.pod, unseen.deleting, unseen.forced = podGone, true, true
		s.jobs[s.count()] = unseen
	}
	j.pod, j.progress, j.vanished = podGone, notBegun, true
	j.gated, j.deleting, j.forced, j.kept = false, false, false, false
}

// isVanished reports whether a pod of a Job that has not finished has vanished.
func (j *job) isVanished() bool { return j.vanished && j.pod == podGone && j.cond == unfinished }

// agesWith lets a Job age with the container of its pod that has vanished.
func (s *state) agesWith(of *job) {
	for i := range s.count() {
		if j := &s.jobs[i]; of.orphan && of.pod == podGone && !j.orphan && j.verb == of.verb && j.number == of.number && j.birth == of.birth {
			j.late = true
		}
	}
}

// shows is called when a container writes the PV, or says what it is.
func (s *state) shows(i int) {
	if s.content != s.jobs[i].source && s.broken.law == noLaw {
		s.broken = broken{law: lawSource}
	}
}

const sourceName = "source"

// sourceUID is the UID of the claim that is to be copied.
func sourceUID(source uint8) string {
	return fmt.Sprintf("55555555-2d4a-4c8e-9a57-0b1c2d3e4f5%d", max(source, 1))
}

func sourceOf(source uint8) *contract.Source {
	if source == 0 {
		return nil
	}
	id := sourceUID(source)
	return &contract.Source{Kind: contract.SourceClaim, Namespace: "app", Name: sourceName, UID: id, PVName: contract.PVName(id)}
}

// sourceObjects returns the claim that is to be copied, and its PV.
func sourceObjects(source uint8) []metav1.Object {
	id := sourceUID(source)
	claim := claimFor(0, 0, 0)
	claim.Name, claim.UID = sourceName, types.UID(id)
	claim.Spec.VolumeName, claim.Status.Phase, claim.Status.Capacity = contract.PVName(id), corev1.ClaimBound, sizeOf(false)
	pv := staticPV(bound)
	pv.Name, pv.UID, pv.Spec.NFS.Path = contract.PVName(id), types.UID("pv-"+id), "/source"
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "app", Name: sourceName, UID: types.UID(id)}
	return []metav1.Object{claim, pv}
}
