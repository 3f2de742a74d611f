package model

// defect is a way to break a law that the shipped rules still have.
type defect struct {
	name  string
	finds func(b broken) bool
}

// knownDefects are what the model finds today. Whoever corrects the rules removes the entry: the
// test fails when a listed defect is not found any more, and when something is found that is not
// listed.
var knownDefects = []defect{
	{"A2, by a PV of another name, or by hand without marks, that came and went while no leader looked", func(b broken) bool {
		return b.law == lawData && !b.right && b.other && !b.looked
	}},
	{"two leaders: a pod that appears long after its Job was deleted is confirmed by a leader that does not see the deletion: the other has recorded " +
		"that the run never ran, and its volume has no record", func(b broken) bool {
		return b.leaders == 2 && b.late && (b.law == lawRecord || b.law == lawRest && b.why == whyStays)
	}},
}

// nameOf returns the known defect of a finding, or nothing.
func nameOf(b broken) string {
	for _, d := range knownDefects {
		if d.finds(b) {
			return d.name
		}
	}
	return ""
}
