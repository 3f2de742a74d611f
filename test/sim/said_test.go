package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// said is what events have said until a time.
type said struct {
	events []fakecluster.Event
	now    time.Time
}

func (w *world) said() said { return said{w.Events.About("", ""), time.Now()} }

// stale is how old the newest event about something that is stuck may be.
const stale = 15 * time.Minute

// excuse returns why a finding is an administrator's to end, who has kept the volume, or whom an
// event asks to decide. It returns nothing if it is a defect.
func (s said) excuse(f audit.Finding, retained, missed bool, left func() string) string {
	switch isVolume := f.Kind == audit.VolumeLeft || f.Kind == audit.SecretLeft; {
	case isVolume && retained:
		return "retained"
	case isVolume && missed:
		return "made elsewhere"
	case (isVolume || f.Kind == audit.RecordHeld || f.Kind == audit.PVTerminating) && s.isInDoubt(f.UID):
		return "in doubt"
	case isVolume:
		return left()
	default:
		return ""
	}
}

// isInDoubt reports whether a fresh event about an object whose name holds a text, or that names
// such an object, says that an administrator has to decide about a volume. That of a PV is emitted
// on the claim if there is one.
func (s said) isInDoubt(text string) bool {
	return slices.ContainsFunc(s.events, func(e fakecluster.Event) bool {
		return e.Reason == "VolumeInDoubt" && (strings.Contains(e.About, text) || strings.Contains(e.Note, text)) && s.isFresh(e)
	})
}

func (s said) isFresh(e fakecluster.Event) bool { return s.now.Sub(e.At) <= stale }

// toForget returns of which claim a fresh event says that an administrator may give up its record
// on a Job, or nothing.
func (s said) toForget(job *batchv1.Job) string {
	for _, e := range s.events {
		if found := forgets.FindStringSubmatch(e.Note); found != nil && e.About == "Job/"+job.Name && s.isFresh(e) {
			return found[1]
		}
	}
	return ""
}

func TestWhatIsStuckNeedsAFreshEvent(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	inDoubt := func(about, note string, age time.Duration) said {
		return said{[]fakecluster.Event{{At: now.Add(-age), About: about, Reason: "VolumeInDoubt", Note: note}}, now}
	}
	for name, test := range map[string]struct {
		said     said
		kind     audit.Kind
		retained bool
		left     string
		want     string
	}{
		"no event":                               {said{nil, now}, audit.PVTerminating, false, "", ""},
		"a fresh event about it":                 {inDoubt("PersistentVolume/pvc-u1", "", stale), audit.PVTerminating, false, "", "in doubt"},
		"a fresh event that names it":            {inDoubt("PersistentVolumeClaim/data", "pvc-u1 may be in use", stale), audit.RecordHeld, false, "", "in doubt"},
		"an old event":                           {inDoubt("PersistentVolume/pvc-u1", "", stale+time.Second), audit.PVTerminating, false, "", ""},
		"a fresh event about another":            {inDoubt("PersistentVolume/pvc-u2", "", 0), audit.RecordHeld, false, "", ""},
		"a volume that is said to stay":          {said{nil, now}, audit.VolumeLeft, false, "given up", "given up"},
		"a record of a volume that is said to":   {said{nil, now}, audit.RecordHeld, false, "given up", ""},
		"a Secret of a volume that is retained":  {said{nil, now}, audit.SecretLeft, true, "", "retained"},
		"a Secret of a volume that is deleted":   {said{nil, now}, audit.SecretLeft, false, "", ""},
		"a pod that is held, whatever is said":   {inDoubt("Pod/u1", "", 0), audit.PodHeld, true, "given up", ""},
		"a volume that there is twice, whatever": {inDoubt("PersistentVolume/pvc-u1", "", 0), audit.VolumeTwice, true, "given up", ""},
	} {
		left := func() string { return test.left }
		if got := test.said.excuse(audit.Finding{Kind: test.kind, UID: "u1"}, test.retained, false, left); got != test.want {
			t.Errorf("%s: excused by %q, want %q", name, got, test.want)
		}
	}
}

func TestARecordIsGivenUpOnlyByAFreshEvent(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	job := &batchv1.Job{}
	job.Name = "provision-1"
	for name, test := range map[string]struct {
		about string
		age   time.Duration
		want  string
	}{
		"fresh":         {"Job/provision-1", stale, "0a-1"},
		"old":           {"Job/provision-1", stale + time.Second, ""},
		"about another": {"Job/provision-2", 0, ""},
	} {
		s := said{[]fakecluster.Event{{At: now.Add(-test.age), About: test.about, Note: "annotate it with flex-provisioner.io/forget=0a-1"}}, now}
		if got := s.toForget(job); got != test.want {
			t.Errorf("%s: given up %q, want %q", name, got, test.want)
		}
	}
}

// What an event says has to be so.
func TestAVolumeStaysOnlyForTheCauseThatAnEventNames(t *testing.T) {
	t.Parallel()
	claim := &corev1.PersistentVolumeClaim{}
	claim.Name, claim.UID, claim.Spec.StorageClassName = "data", "u1", new("gold")
	said := func(about, note string) []fakecluster.Event {
		return []fakecluster.Event{{About: about, Reason: "LeftBehind", Note: note}}
	}
	const forgotten = "what it may have made for the claim app/data stays there, since " + reason.Forgotten
	for name, test := range map[string]struct {
		events    []fakecluster.Event
		forgotten bool
		want      string
	}{
		"so":                           {said("Job/delete-u0-1", forgotten), true, reason.Forgotten},
		"not so":                       {said("Job/delete-u0-1", forgotten), false, ""},
		"about a Job of another claim": {said("Job/delete-u2-1", forgotten), true, ""},
		"about another claim":          {said("Job/delete-u0-1", strings.ReplaceAll(forgotten, "data", "data-1")), true, ""},
		"for no cause that is known":   {said("PersistentVolume/pvc-u1", "its volume remains"), true, ""},
		"about its PersistentVolume":   {said("PersistentVolume/pvc-u1", reason.Forgotten), true, reason.Forgotten},
	} {
		p := past{claim: claim, jobs: map[string]bool{"delete-u0-1": true}, forgotten: test.forgotten}
		if got := p.left(test.events); got != test.want {
			t.Errorf("%s: excused by %q, want %q", name, got, test.want)
		}
	}
}
