package model

// keepingSteps are what happens by itself to volumes that wait for their delete, and to the claims
// that get them.
func keepingSteps() []step {
	return []step{
		once("the time of keep-deleted is over", func(_ *world, s *state) bool { return s.pv.kept }, func(_ *world, s *state) { s.pv.kept = false }),
		once("the PV controller makes a reserved PV available", func(_ *world, s *state) bool {
			return s.pv.ref == refReserved && s.pv.phase == released
		}, func(_ *world, s *state) { s.pv.phase = unbound }),
		once("the binder releases the PV of the other claim", func(_ *world, s *state) bool {
			return s.pv.ref == refOtherGone && s.pv.phase == bound
		}, func(w *world, s *state) { s.pv.phase, s.pv.kept = released, w.keeps }),
	}
}

// trashSteps are what people do with volumes that wait for their delete.
func trashSteps() []step {
	return []step{
		act(trashes, "the administrator empties the trash", func(_ *world, s *state) bool { return s.pv.kept && s.pv.emptied != emptiedNow },
			func(_ *world, s *state) { s.pv.emptied = emptiedNow }),
		act(trashes, "the administrator undeletes the volume: its PV is reserved", func(_ *world, s *state) bool {
			return s.pv.phase == released && s.pv.ref == refOwn && !s.pv.terminating && s.abandoned()
		}, func(_ *world, s *state) { s.pv.ref = refReserved }),
		once("the undelete creates the other claim, and the binder binds it", func(_ *world, s *state) bool {
			return s.pv.ref == refReserved && !s.pv.terminating
		}, func(_ *world, s *state) { s.pv.phase, s.pv.ref = bound, refOther }),
		once("the user deletes the other claim", func(_ *world, s *state) bool { return s.pv.ref == refOther },
			func(_ *world, s *state) { s.pv.ref = refOtherGone }),
		once("another volume of the namespace is released", func(w *world, s *state) bool { return w.keeps && s.beside == noneBeside && s.pv.kept },
			func(_ *world, s *state) { s.beside = usedBeside }),
		once("a PV that no claim had is released in the namespace", func(w *world, s *state) bool { return w.keeps && s.beside == noneBeside && s.pv.kept },
			func(_ *world, s *state) { s.beside = madeBeside }),
		once("that one is undeleted", func(_ *world, s *state) bool { return s.beside != noneBeside }, func(_ *world, s *state) { s.beside = noneBeside }),
	}
}

// launchesDelete is called when a leader launches the delete of a PV's volume, as it has seen the
// state.
func (w *world) launchesDelete(s, seen *state) {
	s.dueBy(seen)
	s.begun = s.begun || w.keeps && seen.pv.terminating
}

// confirmsDelete is called when a leader confirms that delete. No claim can have the volume of a PV
// that is being deleted: then what was due when it was launched stays so.
func (w *world) confirmsDelete(s, seen *state) {
	if !seen.pv.terminating {
		s.dueBy(seen)
	}
	s.begun = w.keeps
}

// dueBy checks that a leader may have seen that a delete is due.
func (s *state) dueBy(seen *state) {
	if v := seen.pv; v.kept && v.emptied != emptiedNow && seen.beside != usedBeside && !s.begun {
		s.broken = broken{law: lawKept}
	}
}
