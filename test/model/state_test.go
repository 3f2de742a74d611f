package model

// claimIs is the state of the claim of the UID.
type claimIs uint8

const (
	claimGone claimIs = iota
	claimPending
	claimBound     // to the UID's PV
	claimElsewhere // bound to the rescued PV
	claimStatic    // bound to the static PV
)

// phase is the state of a PV.
type phase uint8

const (
	noPV phase = iota
	unbound
	bound
	released
)

// ref is what the claimRef of the UID's PV names.
type ref uint8

const (
	refOwn       ref = iota
	refNone          // an administrator has removed it
	refOther         // an administrator has handed the PV on to another claim, which is bound to it
	refName          // the claim by its name alone: the binder has removed the UID
	refTaken         // no claim: the dispatcher has taken the PV from the claim, which was never bound to it
	refReserved      // the other claim by its name alone: an undelete has yet to create it
	refOtherGone     // the other claim, which was deleted
)

// volume is the PV with the UID's name.
type volume struct {
	phase                          phase
	gen                            uint8 // tells PVs of the same name apart
	rev                            uint8 // the config's revision that made it
	node                           uint8 // from which alone it is reachable, 0 is none
	ref                            ref
	retain, finalizer, terminating bool
	grown                          bool // its capacity is the larger one
	misfit                         bool // it lacks the claim's access mode
	bare                           bool // an administrator has written it, without any mark of ours
	kept                           bool // it is released, and the time of keep-deleted is not over
	emptied                        emptied
}

// emptied is whether an administrator has emptied the trash of a released PV.
type emptied uint8

const (
	notEmptied    emptied = iota
	emptiedBefore         // when it was released before
	emptiedNow            // since it is released
)

// beside is which PV of another claim of the namespace waits beside that of the UID, and was released
// later. Both exceed keep-deleted-limit.
type beside uint8

const (
	noneBeside beside = iota
	usedBeside        // some claim had it
	madeBeside        // no claim had it for a minute: who may write PVs can have made it up
)

// exists reports whether the PV does.
func (v volume) exists() bool { return v.phase != noPV }

// rescued is a PV of another name, by an administrator. It names the claim and has the volume of
// the UID.
type rescued struct{ phase phase }

// verb of a run.
type verb uint8

const (
	noVerb verb = iota
	provision
	remove
	expand
)

// podIs is the state of a Job's pod.
type podIs uint8

const (
	podNone    podIs = iota // none was made yet
	podWaiting              // its container does not start: it is gated, or its image is missing
	podRunning
	podDone // its node says that its container is done, and not yet that it has ended
	podEnded
	podGone // the object was removed
)

// ending is how a run ended, and what is recorded of it.
type ending uint8

const (
	noEnd ending = iota
	done
	tempFail
	badConfig
	badRequest
	full
	notStarted
	disrupted
	unknown
)

// progress is how far a container is, which only it knows. It continues when its pod was deleted by
// force.
type progress uint8

const (
	notBegun progress = iota
	begun
	volumeMade // or removed, by a delete; or grown, by an expand
	pvWritten
	over
)

// cond is the final condition of a Job.
type cond uint8

const (
	unfinished cond = iota
	complete
	failed
)

// stage is how far the rescheduling of a claim after a run is.
type stage uint8

const (
	notAsked stage = iota
	announced
	rescheduled
)

// job is a Job of the UID with its pod and container.
type job struct {
	verb                                verb
	number, after, gen, rev, hash, node uint8
	source                              uint8 // what it is to copy
	clean, held, terminating            bool
	forget                              bool // an administrator has given its record up
	rival                               bool // the rescued PV is noted on it
	described                           bool // what its container has said of the PV is on record
	neverBound                          bool // a delete whose request says that no claim was ever bound to the PV
	cond                                cond
	end                                 ending // of the pod
	recorded                            ending
	mayRun                              bool // recorded: until a time that has not come
	stage                               stage

	pod                    podIs
	gated                  bool  // the pod has no node, and gets none
	deleting, forced, kept bool  // of the pod
	late                   bool  // the deadline of its pod has passed
	fresh                  bool  // it was deleted less than a few seconds ago
	inFlight               bool  // a pod of it may still appear, although it is deleted. No client can see that
	nth                    uint8 // how many pods it had before
	noted                  uint8 // which of them the Job names as confirmed, from 1
	vanished               bool  // its pod was removed, finalizers and all, before it was counted
	background             bool  // it is deleted without its pod
	orphan                 bool  // only its pod is left
	birth                  uint8 // tells Jobs of one name apart

	progress progress
	ghost    ghost
}

// ghost is what only the laws see of a delete run.
type ghost struct {
	right   bool  // there was a reason for the run when it was confirmed
	missed  bool  // a leader looked when there was no reason any more and no container had begun, and did nothing
	wrong   bool  // the container began without a reason that is anybody's but a leader's fault
	guarded guard // the PV that was to be kept when the container began
}

// guard is the PV because of which a volume must not be deleted.
type guard uint8

const (
	noGuard guard = iota
	ownPV
	rescuedPV
)

// stored is what the storage holds for the UID.
type stored uint8

const (
	nothing stored = iota
	empty
	used    // a claim was bound to it
	adopted // it held data before
)

// maxJobs is the largest number of Jobs that a state holds. A launch beyond it is not explored.
const maxJobs = 3

// state is everything that is true at one moment. It is comparable, and what observe can see of it
// is visible.
type state struct {
	claim     claimIs
	request   uint8 // version of what the claim asks for
	source    uint8 // which claim it is to be a copy of: 0 none, and a claim of one name, of one UID or of another
	node      uint8 // selected node, 0 is none
	published uint8 // number of the run that the claim reports, twice, plus one for a success
	size      size
	unasked   bool // the PV controller has not asked for a volume for the claim yet, which is not bound

	pv     volume
	rescue rescued
	static phase // of an old PV that fits the claim, and has nothing to do with the UID
	beside beside
	jobs   [maxJobs]job
	config uint8 // version of the ConfigMap
	kept   uint8 // bit set of the stored revisions
	lost   bool  // the first node does not exist any more

	storage  stored
	content  uint8 // what the volume was made from, as source
	other    bool  // a claim was once bound to the rescued PV
	looked   bool  // a leader has looked while the rescued PV existed. Only the laws see it
	lastGen  uint8
	births   uint8 // Jobs that were removed while the second leader might take a later one for them, modulo 4
	acts     uint8 // of people, so far
	failures uint8 // of containers, so far
	freezes  uint8 // of caches of the second leader, so far
	told     bool  // an event has said that the volume stays in the storage
	spared   bool  // an administrator has deleted the PV of a volume that is to be kept
	begun    bool  // a delete of the PV was confirmed, where volumes are kept. Only the laws see it
	broken   broken
	second   second
	hard     hard
}

// size is how far the claim's resize is.
type size struct {
	asked, has, resizing, infeasible bool
}

// count returns the number of Jobs.
func (s *state) count() int {
	n := 0
	for n < maxJobs && s.jobs[n].verb != noVerb {
		n++
	}
	return n
}

// drop removes a Job.
func (s *state) drop(i int) {
	if s.second != (second{}) {
		s.births = (s.births + 1) % 4
	}
	copy(s.jobs[i:], s.jobs[i+1:])
	s.jobs[maxJobs-1] = job{}
}

// find returns the index of a Job, or -1.
func (s *state) find(v verb, number uint8) int {
	for i := range s.count() {
		if s.jobs[i].verb == v && s.jobs[i].number == number && !s.jobs[i].orphan {
			return i
		}
	}
	return -1
}

// newest returns the newest Job of a verb, or nil.
func (s *state) newest(v verb) *job {
	var last *job
	for i := range s.count() {
		if j := &s.jobs[i]; j.verb == v && !j.orphan && (last == nil || j.number > last.number) {
			last = j
		}
	}
	return last
}

// visible returns what observe can see of a Job and its pod.
func (j job) visible() job {
	j.progress, j.ghost, j.inFlight, j.vanished = notBegun, ghost{}, false, false
	return j
}

func (s *state) isAny(is func(*job) bool) bool {
	for i := range s.count() {
		if is(&s.jobs[i]) {
			return true
		}
	}
	return false
}

func (s *state) isAnyRunning() bool { return s.isAny((*job).runs) }

func (s *state) hasOrphan() bool { return s.isAny(func(j *job) bool { return j.orphan }) }

// touchClaim is called with every change of the claim: an announced rescheduling is of the claim as
// it was.
func (s *state) touchClaim() {
	for i := range s.jobs {
		if s.jobs[i].stage == announced {
			s.jobs[i].stage = rescheduled
		}
	}
}

// bindTo is called when the claim is bound.
func (s *state) bindTo(claim claimIs) {
	s.claim, s.unasked = claim, false
	s.touchClaim()
}

// tidy removes what nothing keeps any more.
func (s *state) tidy() {
	if s.claim == claimGone && s.static == bound {
		s.static = noPV // it is released, and no claim gets it
	}
	if s.pv.phase != released {
		s.pv.kept = false
		s.pv.emptied = min(s.pv.emptied, emptiedBefore)
	}
	if s.pv.terminating && s.pv.phase != bound && !s.pv.finalizer {
		s.spared = s.spared || s.pv.retain
		s.pv = volume{}
	}
	for i := s.count() - 1; i >= 0; i-- {
		j := &s.jobs[i]
		if j.deleting && !j.kept && (j.pod == podEnded || j.forced || j.gated) {
			j.pod = podGone
		}
		over := j.pod == podNone || j.pod == podGone
		if j.terminating && !j.held && !j.orphan && (j.background && !over || over && j.inFlight && !j.fresh) {
			j.orphan = true
			s.births = (s.births + 1) % 4
		}
		if s.hard.forgetful && j.terminating && !j.held && over && j.runs() && !j.inFlight && !j.orphan {
			j.orphan = true // the object goes, and the container of a pod that was deleted by force works on
			s.births = (s.births + 1) % 4
		}
		if j.terminating && !j.held && over && !j.runs() && !j.inFlight {
			s.drop(i)
		}
	}
	s.begun = s.begun && s.pv.exists()
	if s.storage == nothing && !s.isAnyRunning() {
		s.told, s.spared, s.looked = false, false, false
	}
	if s.second == (second{}) && !s.hasOrphan() {
		s.births = 0
		for i := range s.jobs {
			s.jobs[i].birth = 0
		}
	}
}

// runs reports whether the container of a Job is between its beginning and its end.
func (j *job) runs() bool { return j.progress != notBegun && j.progress != over }
