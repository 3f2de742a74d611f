package model

import "strings"

// law is a law of the model.
type law uint8

const (
	noLaw law = iota
	lawGuarded
	lawData
	lawAlone
	lawRecord
	lawCycle
	lawRest
	lawOther
	lawUnasked
	lawSource
	lawOutcome
	lawKept
)

var lawNames = map[law]string{
	lawGuarded: "a delete that commits finds no PV of that volume bound, retained or handed on before its container began",
	lawData:    "used or adopted becomes nothing only by the reclaim of a released PV with policy Delete whose claim no longer exists",
	lawAlone:   "there are never two containers of one UID at once",
	lawRecord:  "a volume in the storage has a held record, a PV, or an event that says that it stays",
	lawCycle:   "the dispatcher does not write for ever by itself",
	lawOther:   "no provision is confirmed for a claim that Kubernetes may bind to a PV that exists, as far as the leader sees",
	lawUnasked: "nothing is written on a claim before it is bound or asked for",
	lawSource:  "no PV shows a volume that was made from another source than its request asks for",
	lawOutcome: "no leader releases a pod before it sees its outcome on record",
	lawKept:    "no delete of a volume that is kept is launched or confirmed before its time, unless the trash was emptied or exceeds the limit",
	lawRest:    "without people and without failures everything comes to rest: a volume for a claim that lives, nothing for one that is gone, or an event that says why",
}

// broken is a law that was broken, and what tells one way to break it from another.
type broken struct {
	law     law
	guarded guard
	storage stored
	undo    bool
	other   bool   // a claim was once bound to the rescued PV
	looked  bool   // a leader has looked while that PV existed
	right   bool   // there was a reason for the delete when it was confirmed
	why     string // of an end
	late    bool   // the pod of a deleted Job has appeared, or may appear, long after
	leaders uint8
}

func (b broken) String() string {
	text := lawNames[b.law]
	if b.law != lawGuarded && b.law != lawData {
		return strings.TrimSuffix(text+": "+b.why, ": ")
	}
	if b.undo {
		text += "; an undo"
	}
	why := "; there was no reason for it when it was confirmed"
	if b.right {
		why = "; its reason has vanished since, and a leader did nothing"
	}
	if b.other {
		why += "; a claim was bound to a PV of another name" + map[bool]string{true: ", and a leader has seen that"}[b.looked]
	}
	return text + why + []string{"", "; the PV is in use or kept", "; the PV of another name is in use"}[b.guarded] +
		[]string{"", "; the volume was never used", "; the volume was used", "; the volume was adopted"}[b.storage]
}

// guard returns the PV because of which the volume must be kept.
func (s *state) guard() guard {
	switch {
	case s.rescue.phase == bound || s.rescue.phase == released && s.other:
		return rescuedPV
	case s.pv.exists() && (s.pv.phase == bound || s.pv.retain || s.pv.ref == refOther || s.pv.ref == refReserved):
		return ownPV
	default:
		return noGuard
	}
}

// hasLatePod reports whether the pod of a deleted Job has appeared, or may appear.
func (s *state) hasLatePod() bool {
	return s.isAny(func(j *job) bool { return j.orphan || j.inFlight })
}

// looksAt is called when a leader writes, or has nothing to write, as it has seen this.
func (s *state) looksAt(seen *state) {
	s.looked = s.looked || seen.rescue.phase != noPV || seen.pv.bare
}

// mayGetOther reports whether Kubernetes may bind the claim to the static PV, and has not asked for
// a new one.
func (s *state) mayGetOther() bool {
	return s.claim == claimPending && s.unasked && s.static == unbound
}

// writesOnClaim is called when a leader writes on the claim.
func (s *state) writesOnClaim() {
	if s.claim == claimPending && s.unasked {
		s.broken = broken{law: lawUnasked}
	}
	s.touchClaim()
}

// hasReason reports whether a delete run may delete the volume now.
func (s *state) hasReason(j *job) bool {
	switch {
	case j.verb != remove:
		return true
	case s.guard() != noGuard:
		return false
	case j.gen == 0:
		return s.storage != used
	case s.pv.gen != j.gen:
		return s.storage == nothing || s.storage == empty
	case s.pv.phase == released && s.pv.ref != refTaken:
		return s.abandoned()
	default: // no claim was bound to it
		return s.storage == nothing || s.storage == empty
	}
}

// idled is called when a leader has looked at the state as it is and has written nothing.
func (s *state) idled() {
	for i := range s.count() {
		j := &s.jobs[i]
		waits := j.pod == podWaiting && !j.gated && !j.deleting && !j.terminating
		if j.verb == remove && waits && !s.hasReason(j) {
			j.ghost.missed = true
		}
	}
}

// begins is called when a container begins.
func (s *state) begins(i int) {
	j := &s.jobs[i]
	j.progress = begun
	if j.verb == remove && !s.hasReason(j) && (j.ghost.missed || !j.ghost.right) {
		j.ghost.wrong, j.ghost.guarded = true, s.guard()
	}
	for k := range s.count() {
		if k != i && s.jobs[k].runs() {
			s.broken = broken{law: lawAlone}
		}
	}
}

// commits is called when a delete has removed the volume.
func (s *state) commits(i int) {
	j := &s.jobs[i]
	if s.storage == nothing || !j.ghost.wrong {
		return
	}
	found := broken{guarded: j.ghost.guarded, storage: s.storage, other: s.other, looked: s.looked, undo: j.gen == 0, right: j.ghost.right}
	switch {
	case j.ghost.guarded != noGuard:
		found.law = lawGuarded
	case s.storage == used, s.storage == adopted:
		found.law = lawData
	default:
		return
	}
	s.broken = found
}
