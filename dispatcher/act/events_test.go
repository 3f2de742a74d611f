package act

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
)

// A claim reports again why it waits when the cause changes. client-go's recorder counts two events
// that differ only in their note as one, and keeps the first note.
func TestAnotherCauseIsAnotherEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		a := &Actor{Recorder: broadcaster.NewRecorder(scheme.Scheme, "flex-provisioner.io")}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "data", UID: "1"}}
		for _, note := range []string{"a quota", "a quota", "a policy", "a quota"} {
			a.emit(claim, nil, corev1.EventTypeWarning, "FailedCreate", note)
			time.Sleep(time.Second)
		}
		list, err := client.EventsV1().Events("app").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var notes []string
		for _, e := range list.Items {
			notes = append(notes, e.Note)
		}
		slices.Sort(notes)
		if want := []string{"a policy", "a quota"}; !slices.Equal(notes, want) {
			t.Errorf("told: %q, want %q", notes, want)
		}
	})
}

// A run whose PV the dispatcher writes has no token, which is no fault of a policy.
func TestOnlyARunThatWritesItsPVLacksItsToken(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "provision-1-1"}}
	job.Spec.Template.Spec.AutomountServiceAccountToken = new(false)
	o := &observe.Observation{Pods: map[string][]*corev1.Pod{job.Name: {{}}}}
	for _, describes := range []bool{false, true} {
		var run decide.Run
		run.Verb, run.DescribesPV, run.Outcome.Verdict = contract.Provision, describes, contract.Done
		fault := provisionFault(o, run, job)
		if blames := strings.Contains(fault, "no token"); blames == describes {
			t.Errorf("it describes its PV: %t, and the fault is: %s", describes, fault)
		}
	}
}

// Claims, storages and images choose texts that events quote, and a kubelet a reason.
func TestAnEventMovesNoCursorOfATerminal(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	a := &Actor{Recorder: recorder}
	a.emit(&corev1.PersistentVolumeClaim{}, nil, corev1.EventTypeWarning, "Failed\x1b\nCreate", "the quota\x1b[31m\tof\nyou\u202e")
	if got, want := <-recorder.Events, "Warning Failed Create the quota[31m of\nyou"; got != want {
		t.Errorf("the event is %q, want %q", got, want)
	}
}
