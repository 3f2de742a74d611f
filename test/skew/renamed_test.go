package skew_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// failure is a T of a world that is to fail: it notes how, and the test goes on.
type failure struct {
	*testing.T // of the bubble
	test       *testing.T
	mu         sync.Mutex
	first      string
}

func (f *failure) note(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == "" {
		f.first, _, _ = strings.Cut(text, "\n")
	}
}

// Failed reports whether the world has failed.
func (f *failure) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first != ""
}

func (f *failure) Helper()                           { f.test.Helper() }
func (f *failure) Error(args ...any)                 { f.note(fmt.Sprint(args...)) }
func (f *failure) Errorf(format string, args ...any) { f.note(fmt.Sprintf(format, args...)) }
func (f *failure) Logf(string, ...any)               {}

// Fatal ends the goroutine of the world.
func (f *failure) Fatal(args ...any) {
	f.Error(args...)
	runtime.Goexit()
}

// Fatalf ends the goroutine of the world.
func (f *failure) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// readBack are names under which a version leaves what a later one must find again, each with a
// story in which that is missed. The label jobs.LabelMember is none: a Job without it is found by its
// other names (TestAJobWithoutTheLabelOfItsClaimIsRecorded).
var readBack = []struct{ name, story string }{
	{jobs.AnnRecord + `":`, "bound-and-deleted"},
	{jobs.FinalizerRecord + `"]`, "abandoned"},
	{jobs.LabelVerb, "abandoned"},
	{jobs.AnnRequest, "abandoned"},
	{jobs.AnnPV, "abandoned"},
	{contract.AnnRevision, "without-config"},
	{contract.AnnClaimUID, "bound-and-deleted"},
	{contract.FinalizerStorage, "bound-and-deleted"},
}

// recordFields are fields of a record that a later version must find again.
var recordFields = []struct{ field, story string }{
	{"uid", "batch"},
	{"volume", "bound-and-deleted"},
	{"described", "described"},
}

// TestANameThatIsNotFoundAgainIsNoticed gives what a version has left other names, one at a time, as
// if this version had renamed them. If nothing fails then, no test would notice that.
func TestANameThatIsNotFoundAgainIsNoticed(t *testing.T) {
	t.Parallel()
	for _, one := range readBack {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			mustNotice(t, one.story, func(_ string, object []byte) []byte {
				return bytes.ReplaceAll(object, []byte(one.name), []byte(strings.Replace(one.name, contract.Domain[:4], "elfx", 1)))
			})
		})
	}
	for _, one := range recordFields {
		t.Run("record "+one.field, func(t *testing.T) {
			t.Parallel()
			mustNotice(t, one.story, func(resource string, object []byte) []byte {
				if resource != "jobs" {
					return object
				}
				return bytes.ReplaceAll(object, []byte(`\"`+one.field+`\":`), []byte(`\"_`+one.field+`\":`))
			})
		})
	}
}

// mustNotice fails the test unless a state of a story, whose objects are changed, is not served.
func mustNotice(t *testing.T, name string, change func(resource string, object []byte) []byte) {
	t.Helper()
	p := readPast(t, lastStory(t, name))
	p.decode(t, "changed", change)
	for _, writes := range p.states() {
		f := &failure{test: t}
		serveFrom(f, p, writes, 0)
		if f.Failed() {
			t.Logf("after %d writes, %s: %s", writes, p.Changes[writes-1].title(), f.first)
			return
		}
	}
	t.Error("each state is served all the same")
}

// lastStory returns the file of a story, of the last version that has it.
func lastStory(t *testing.T, name string) string {
	t.Helper()
	files := slices.DeleteFunc(storyFiles(t, "testdata"), func(path string) bool { return filepath.Base(path) != name+".yaml" })
	if len(files) == 0 {
		t.Fatalf("no version has the story %s", name)
	}
	return files[len(files)-1]
}

// TestARecordOfANewerVersionIsLeftAlone starts the dispatcher of today where a later one has written
// the records: nothing of the claims is changed, and an event says so, until the later one is back.
func TestARecordOfANewerVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			p, reported := readPast(t, lastStory(t, s.name)), 0
			p.decode(t, "of a later version", newer)
			for _, writes := range p.states() {
				inWorld(t, s, func(w *world) { reported += w.mustLeaveAlone(p, writes) })
				if t.Failed() {
					return
				}
			}
			if reported == 0 {
				t.Error("no event has said that a record is of a newer version")
			}
		})
	}
}

// newer gives the records of Jobs a version that this dispatcher does not know, in a form that it
// does not know either.
func newer(resource string, object []byte) []byte {
	if resource != "jobs" {
		return object
	}
	var job map[string]any
	if err := json.Unmarshal(object, &job); err != nil {
		panic(err)
	}
	annotations := job["metadata"].(map[string]any)["annotations"].(map[string]any)
	record := strings.Replace(annotations[jobs.AnnRecord].(string), `{"version":1,`, `{"version":2,"namespaces":{"app":1},`, 1)
	annotations[jobs.AnnRecord] = strings.ReplaceAll(record, `"outcome":{`, `"ended":{`)
	out, err := json.Marshal(job)
	if err != nil {
		panic(err)
	}
	return out
}

// mustLeaveAlone starts a dispatcher in a state, and fails if it writes on a claim that has a Job of
// a newer version, on that Job, its pod or its PV. It returns how many events have said why.
func (w *world) mustLeaveAlone(p *past, writes int) int {
	w.resume(p, writes)
	newer, free := map[string]bool{}, map[string]bool{}
	for _, job := range fakecluster.List[*batchv1.Job](w) {
		free[job.Name] = !isHeld(job.Finalizers)
		for _, uid := range jobs.UIDs(job) {
			newer[uid] = newer[uid] || isHeld(job.Finalizers)
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(newer)), true) {
		return 0 // nothing of this state is a later version's
	}
	w.Start()
	w.Advance(time.Hour)
	for _, change := range w.Server.History()[writes:] {
		if change.By != fakecluster.DispatcherName {
			continue
		}
		for _, obj := range []fakecluster.Object{change.Old, change.Now} {
			if pod, isPod := obj.(*corev1.Pod); isPod && free[pod.Labels[batchv1.JobNameLabel]] {
				continue // its Job was of several claims, and expires: the pod is freed for another one
			}
			if obj != nil && slices.ContainsFunc(uidsOf(obj), func(uid string) bool { return newer[uid] }) {
				w.T.Errorf("after %d writes of the story the dispatcher has written, although a record is of a newer version: %s %s %s", writes, change.Verb, change.Resource, change.Name)
			}
		}
	}
	return len(w.Events.About("", reason.RecordTooNew))
}

// uidsOf returns the UIDs of the claims that an object is of.
func uidsOf(obj fakecluster.Object) []string {
	switch o := obj.(type) {
	case *batchv1.Job:
		return jobs.UIDs(o)
	case *corev1.Pod:
		return jobs.UIDsOfPod(o)
	case *corev1.PersistentVolume:
		return []string{strings.TrimPrefix(o.Name, contract.PVName(""))}
	case *corev1.PersistentVolumeClaim:
		return []string{string(o.UID)}
	default:
		return nil
	}
}
