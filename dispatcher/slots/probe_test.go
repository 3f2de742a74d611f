package slots

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

var (
	class = ClassKey{"home", "x"}
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	start = Start{Revision: "home/gold-1"}
)

// slotsWith returns Slots over some objects, and the clock.
func slotsWith(tb testing.TB, objects ...metav1.Object) (*Slots, *clocktesting.FakeClock) {
	tb.Helper()
	caches, err := cluster.NewStatic(fake.NewClientset(), []string{"home"}, objects...)
	if err != nil {
		tb.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(began)
	return New(caches, clock, func(ClassKey, time.Duration) {}), clock
}

func jobOf(uid string) *batchv1.Job {
	return jobOfNamespace(uid, "app")
}

func jobOfNamespace(uid, namespace string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "home", Name: "provision-" + uid + "-1", UID: types.UID("job-" + uid), CreationTimestamp: metav1.NewTime(began),
		Labels:      map[string]string{jobs.LabelVerb: string(contract.Provision), config.LabelClass: "x"},
		Annotations: map[string]string{jobs.AnnUIDs: uid, contract.AnnRevision: start.Revision},
	}}
	fixture.Record(job, uid, func(r *jobs.Record) { r.Namespace = namespace })
	return job
}

// podOf returns the pod of a UID's Job, on a node.
func podOf(uid string, status corev1.PodStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "home", Name: "pod-" + uid, CreationTimestamp: metav1.NewTime(began),
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", UID: types.UID("job-" + uid), Controller: new(true)}},
			Labels: map[string]string{
				jobs.LabelVerb: string(contract.Provision), config.LabelClass: "x", contract.LabelClaimUID: uid, batchv1.JobNameLabel: "provision-" + uid + "-1",
			},
		},
		Spec: corev1.PodSpec{NodeName: "node-1"}, Status: status,
	}
}

// ofNode makes a pod the mirror of one that a kubelet runs by itself.
func ofNode(pod *corev1.Pod) *corev1.Pod {
	pod.OwnerReferences[0].Kind = "Node"
	return pod
}

func waiting(uid string, limit int) Waiter {
	return Waiter{Flow: Flow{"app", contract.Provision}, UID: uid, Since: began, Limit: limit, Start: start}
}

func TestASlotIsHeldUntilThePodHasEnded(t *testing.T) {
	working, failed := corev1.PodStatus{Phase: corev1.PodRunning}, corev1.PodStatus{Phase: corev1.PodFailed}
	finished := func(job *batchv1.Job) *batchv1.Job {
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		return job
	}
	recordedUnseen := finished(jobOf("a"))
	fixture.Record(recordedUnseen, "a", func(r *jobs.Record) {
		r.Recorded = &jobs.Outcome{Verdict: contract.Disrupted, MayRunUntil: began.Add(time.Minute)}
	})
	for name, test := range map[string]struct {
		objects []metav1.Object
		held    bool
	}{
		"no Job":                                    {},
		"a Job without a pod":                       {[]metav1.Object{jobOf("a")}, true},
		"its pod waits":                             {[]metav1.Object{jobOf("a"), podOf("a", corev1.PodStatus{Phase: corev1.PodPending})}, true},
		"its pod works":                             {[]metav1.Object{jobOf("a"), podOf("a", working)}, true},
		"its pod has ended":                         {[]metav1.Object{jobOf("a"), podOf("a", failed)}, false},
		"the Job has failed, and its pod works":     {[]metav1.Object{finished(jobOf("a")), podOf("a", working)}, true},
		"the Job is not there, and its pod works":   {[]metav1.Object{podOf("a", working)}, true},
		"a mirror pod has the class's label":        {[]metav1.Object{ofNode(podOf("a", working))}, false},
		"the Job has failed":                        {[]metav1.Object{finished(jobOf("a"))}, false},
		"its node has not said that the pod ended":  {[]metav1.Object{recordedUnseen}, true},
		"its pod has ended, and another of it runs": {[]metav1.Object{jobOf("a"), podOf("a", failed), another(podOf("a", working))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, clock := slotsWith(t, test.objects...)
			s.Await(class, waiting("b", 1))
			if held := len(s.Begin(class)) == 0; held != test.held {
				t.Errorf("the slot is held: %t, want %t", held, test.held)
			}
			clock.SetTime(began.Add(2 * time.Minute))
			if name == "its node has not said that the pod ended" && len(s.Begin(class)) == 0 {
				t.Error("the slot is held when the pod's own deadline has passed")
			}
		})
	}
}

// kubectl flex has no queue. It did not name the Jobs that an administrator can do something about.
func TestHoldersAreNamedWithoutAnyWaiter(t *testing.T) {
	overdue := podOf("a", corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: began}})
	overdue.Spec.ActiveDeadlineSeconds = new(int64(60))
	s, clock := slotsWith(t, jobOf("a"), overdue, jobOf("b"))
	clock.SetTime(began.Add(time.Hour))
	got := s.Holders(class, 4)
	if len(got) != 2 || !strings.Contains(got[0], "provision-a-1 (past its deadline") || got[1] != "provision-b-1" {
		t.Errorf("the holders are %q", got)
	}
}

// A Job holds a slot for each script that its pod runs at a time, and so does the pod without it.
func TestABatchOfScriptsHoldsSeveralSlots(t *testing.T) {
	batch, alone := jobOf("a"), podOf("b", corev1.PodStatus{Phase: corev1.PodRunning})
	batch.Labels[jobs.LabelParallel], alone.Labels[jobs.LabelParallel] = "3", "2"
	s, _ := slotsWith(t, batch, alone, jobOf("c"))
	if used := s.Used(class, 8); used != 6 {
		t.Errorf("%d slots are used, want 6", used)
	}
	if got := s.Holders(class, 8); !slices.Contains(got, "provision-a-1 (3 scripts)") || !slices.Contains(got, "provision-c-1") {
		t.Errorf("the holders are %q", got)
	}
	for _, uid := range []string{"v", "w", "x"} {
		s.Await(class, waiting(uid, 8))
	}
	if uids := s.Begin(class); len(uids) != 2 {
		t.Errorf("%v are offered a slot, want two of them", uids)
	}
}

// Two lost nodes once kept all slots of a class, each with half of them.
func TestOverdueJobsOfAllNodesLeaveHalfOfTheSlots(t *testing.T) {
	var objects []metav1.Object
	for i, uid := range []string{"a", "b", "c", "d"} {
		pod := podOf(uid, corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: began}})
		pod.Spec.ActiveDeadlineSeconds, pod.Spec.NodeName = new(int64(60)), fmt.Sprint("node-", i%2)
		objects = append(objects, jobOf(uid), pod)
	}
	s, clock := slotsWith(t, objects...)
	clock.SetTime(began.Add(time.Hour))
	for _, uid := range []string{"v", "w", "x"} {
		s.Await(class, waiting(uid, 4))
	}
	if uids := s.Begin(class); len(uids) != 2 {
		t.Errorf("%v are offered a slot, want two of them", uids)
	}
}

func another(pod *corev1.Pod) *corev1.Pod {
	pod.Name += "-2"
	return pod
}

// A batch is refused, and its first claim is launched alone: no other claim is offered the slot in
// between. The other claims of the batch wait as before.
func TestTheClaimsOfARefusedJobWaitAsBefore(t *testing.T) {
	s, _ := slotsWith(t)
	for i, uid := range []string{"a", "b", "c"} {
		w := waiting(uid, 1)
		w.Group, w.Batch, w.Since = "g", 2, began.Add(time.Duration(i)*time.Second)
		s.Await(class, w)
	}
	if first, others := s.Begin(class), s.Join("a", "g", 1); !slices.Equal(first, []types.UID{"a"}) || !slices.Equal(others, []types.UID{"b"}) {
		t.Fatalf("%v are offered a slot, and %v join", first, others)
	}
	s.Await(class, waiting("b", 1)) // it is looked at meanwhile
	s.Use(jobOf("a"))
	s.Unused(jobOf("a"))
	s.Return("b")
	if uids := s.Join("a", "", 1); len(uids) != 0 {
		t.Errorf("%v join a claim that is to be alone", uids)
	}
	s.Use(jobOf("a"))
	s.Launched("a")
	if uids := s.Begin(class); len(uids) != 0 {
		t.Errorf("%v are offered a slot, and the only slot is used", uids)
	}
	s.Unused(jobOf("a"))
	if uids := s.Begin(class); !slices.Equal(uids, []types.UID{"b"}) {
		t.Errorf("%v are offered a slot, want b, which has waited longest", uids)
	}
}

// The answer to the creation of a Job was lost. It may run, although no cache shows it yet.
func TestASlotOfAJobThatMayExistIsKeptForAWhile(t *testing.T) {
	s, clock := slotsWith(t)
	s.Await(class, waiting("a", 1))
	s.Begin(class)
	s.Await(class, waiting("b", 1))
	for range 2 {
		s.Use(jobOf("a"))
		s.Unknown(jobOf("a"))
		s.End("a")
		if uids := s.Begin(class); len(uids) != 0 {
			t.Fatalf("%v have the slot, and the Job may exist", uids)
		}
	}
	if after := s.Again(class); after != unknownFor {
		t.Errorf("it is looked again after %s", after)
	}
	clock.SetTime(began.Add(unknownFor))
	if len(s.Begin(class)) == 0 {
		t.Error("the slot is kept for ever")
	}
}

// A Job was created and deleted while its watch was interrupted. Its slot was kept until a restart.
func TestASlotOfAJobThatTheCacheNeverShowsIsFree(t *testing.T) {
	s, _ := slotsWith(t)
	s.Await(class, waiting("a", 1))
	s.Begin(class)
	s.Await(class, waiting("b", 1))
	s.Use(jobOf("a"))
	created := jobOf("a")
	created.ResourceVersion = "7"
	s.Created(created)
	s.Launched("a")
	s.caches.Jobs["home"].Bookmark("6")
	if uids := s.Begin(class); len(uids) != 0 {
		t.Fatalf("%v have the slot, and the cache may show the Job yet", uids)
	}
	if after := s.Again(class); after != unseenFor {
		t.Errorf("it is looked again after %s", after)
	}
	s.caches.Jobs["home"].Bookmark("8")
	if len(s.Begin(class)) == 0 {
		t.Error("the slot is kept, and the Job does not exist")
	}
}

// Each is launched when the one before has started.
func TestWaitersBehindTheProbeFollowOneByOne(t *testing.T) {
	behind := func(s *Slots) {
		for i := range 10 {
			w := waiting(fmt.Sprint(i), 20)
			w.Behind = true
			s.Await(class, w)
		}
	}
	probe, pod := jobOf("probe"), podOf("probe", corev1.PodStatus{Phase: corev1.PodPending})
	s, _ := slotsWith(t, probe, pod)
	behind(s)
	if uids := s.Begin(class); len(uids) != 0 {
		t.Fatalf("%v are launched, and the first cannot start", uids)
	}
	if n := s.Waiting()[class][Flow{"app", contract.Provision}]; n != 10 || !s.Awaits("3") {
		t.Errorf("%d wait, want 10", n)
	}
	s.Await(class, waiting("new", 20))
	if uids := s.Begin(class); !slices.Equal(uids, []types.UID{"new"}) {
		t.Errorf("%v are launched, want the one that is not behind the probe", uids)
	}

	s, _ = slotsWith(t)
	behind(s)
	for n := range 10 {
		uids := s.Begin(class)
		if len(uids) != 1 {
			t.Fatalf("%v are launched after %d, want one", uids, n)
		}
		s.Use(jobOf(string(uids[0])))
		s.Launched(uids[0])
		if more := s.Begin(class); len(more) != 0 {
			t.Fatalf("%v are launched before %v has started", more, uids)
		}
		s.Observe(jobOf(string(uids[0])))
	}
}
