package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/audit"
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

// excuses reports whether a finding is an administrator's to end, who has kept the volume, or whom an event asks to decide.
func (s said) excuses(f audit.Finding, retained bool, claim *corev1.PersistentVolumeClaim) bool {
	switch f.Kind {
	case audit.VolumeLeft, audit.SecretLeft:
		return retained || s.isInDoubt(f.UID) || s.isLeft(f.UID, claim.Name)
	case audit.RecordHeld, audit.PVTerminating:
		return s.isInDoubt(f.UID)
	default:
		return false
	}
}

// isLeft reports whether an event says that the volume of a claim stays in the storage.
func (s said) isLeft(uid, claim string) bool {
	return slices.ContainsFunc(s.events, func(e fakecluster.Event) bool {
		return e.Reason == "LeftBehind" && (strings.Contains(e.About, uid) || strings.Contains(e.Note+" ", "/"+claim+" "))
	})
}

// isInDoubt reports whether a fresh event about an object whose name holds a text, or that names such an object, says that an administrator has to decide about a
// volume. That of a PV is emitted on the claim if there is one.
func (s said) isInDoubt(text string) bool {
	return slices.ContainsFunc(s.events, func(e fakecluster.Event) bool {
		return e.Reason == "VolumeInDoubt" && (strings.Contains(e.About, text) || strings.Contains(e.Note, text)) && s.isFresh(e)
	})
}

func (s said) isFresh(e fakecluster.Event) bool { return s.now.Sub(e.At) <= stale }

// toForget returns of which claim a fresh event says that an administrator may give up its record on a Job, or nothing.
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
	left := said{[]fakecluster.Event{{At: now.Add(-time.Hour), About: "Job/delete-u1-1", Reason: "LeftBehind"}}, now}
	for name, test := range map[string]struct {
		said     said
		kind     audit.Kind
		retained bool
		want     bool
	}{
		"no event":                               {said{nil, now}, audit.PVTerminating, false, false},
		"a fresh event about it":                 {inDoubt("PersistentVolume/pvc-u1", "", stale), audit.PVTerminating, false, true},
		"a fresh event that names it":            {inDoubt("PersistentVolumeClaim/data", "pvc-u1 may be in use", stale), audit.RecordHeld, false, true},
		"an old event":                           {inDoubt("PersistentVolume/pvc-u1", "", stale+time.Second), audit.PVTerminating, false, false},
		"a fresh event about another":            {inDoubt("PersistentVolume/pvc-u2", "", 0), audit.RecordHeld, false, false},
		"a volume that is said to stay":          {left, audit.VolumeLeft, false, true},
		"a record of a volume that is said to":   {left, audit.RecordHeld, false, false},
		"a Secret of a volume that is retained":  {said{nil, now}, audit.SecretLeft, true, true},
		"a Secret of a volume that is deleted":   {said{nil, now}, audit.SecretLeft, false, false},
		"a pod that is held, whatever is said":   {inDoubt("Pod/u1", "", 0), audit.PodHeld, true, false},
		"a volume that there is twice, whatever": {inDoubt("PersistentVolume/pvc-u1", "", 0), audit.VolumeTwice, true, false},
	} {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Name = "data"
		if got := test.said.excuses(audit.Finding{Kind: test.kind, UID: "u1"}, test.retained, claim); got != test.want {
			t.Errorf("%s: excused %v", name, got)
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
