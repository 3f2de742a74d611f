package observe_test

import (
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
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

const (
	uid       = "uid-1"
	own       = "provision-uid-1-1"
	namespace = "storage"
)

var now = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

func jobOf(annotations map[string]string) *batchv1.Job {
	annotations[jobs.AnnUIDs] = uid
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: own, UID: own, Annotations: annotations, Finalizers: []string{jobs.FinalizerRecord},
		Labels:            map[string]string{jobs.LabelVerb: string(contract.Provision), contract.LabelClaimUID: uid, jobs.LabelMember + uid: "true"},
		CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
	}}
}

// podOf returns the pod of a Job, an hour old, with a deadline of ten minutes.
func podOf(job, node string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: job + "-pod", UID: types.UID(job + "-pod"), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
		Labels:          map[string]string{batchv1.JobNameLabel: job, contract.LabelClaimUID: uid},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", UID: types.UID(job), Controller: new(true)}},
	}}
	pod.Spec.NodeName, pod.Spec.ActiveDeadlineSeconds = node, new(int64(600))
	change(pod)
	return pod
}

func gated(pod *corev1.Pod) {
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: jobs.GateConfirm}}
}

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(now.Add(-time.Minute))) }

func byForce(pod *corev1.Pod) {
	deleted(pod)
	pod.DeletionGracePeriodSeconds = new(int64(0))
}

func ended(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }

func node(ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	return n
}

// observed returns what is observed of the first run among these objects.
func observed(t *testing.T, objects ...metav1.Object) decide.Run {
	t.Helper()
	return observedBy(t, nil, objects...)
}

// observedBy returns what is observed of the first run by a reader that shows other objects than
// the caches, if it is not nil.
func observedBy(t *testing.T, reader cluster.Reader, objects ...metav1.Object) decide.Run {
	t.Helper()
	for _, r := range observationBy(t, reader, objects...).View.Runs {
		if r.Name == own {
			return r
		}
	}
	t.Fatal("its Job was not observed")
	return decide.Run{}
}

// observationBy returns all that is observed by such a reader.
func observationBy(t *testing.T, reader cluster.Reader, objects ...metav1.Object) *observe.Observation {
	t.Helper()
	caches, err := cluster.NewStatic(fake.NewClientset(), []string{namespace}, objects...)
	if err != nil {
		t.Fatal(err)
	}
	return observationOf(t, caches, reader)
}

// observationOf returns all that is observed by a reader, or by the caches without one.
func observationOf(t *testing.T, caches *cluster.Caches, reader cluster.Reader) *observe.Observation {
	t.Helper()
	clock := clocktesting.NewFakeClock(now)
	b := &observe.Observer{Clock: clock, Resolver: resolve.Resolver{
		Caches: caches, Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespace: namespace,
	}}
	if reader == nil {
		reader = caches.Cached()
	}
	o, err := b.Observe(t.Context(), reader, uid, observe.Hint{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestRunIsBlockedByOtherPodsThatMayRun(t *testing.T) {
	pod, other := podOf(own, "", gated), "delete-uid-1-1-pod"
	for name, tt := range map[string]struct {
		pod      *corev1.Pod
		node     *corev1.Node
		otherPod string
		lostNode string
		recheck  time.Time
	}{
		"none":                                  {nil, nil, "", "", time.Time{}},
		"one that runs":                         {podOf("delete-uid-1-1", "n1", func(*corev1.Pod) {}), nil, other, "", time.Time{}},
		"another gated one":                     {podOf("delete-uid-1-1", "", gated), nil, other, "", time.Time{}},
		"one that is being deleted":             {podOf("delete-uid-1-1", "n1", deleted), nil, other, "", time.Time{}},
		"one that was deleted without a node":   {podOf("delete-uid-1-1", "", deleted), nil, "", "", time.Time{}},
		"one that has ended":                    {podOf("delete-uid-1-1", "n1", ended), node(corev1.ConditionFalse), "", "", time.Time{}},
		"by force, waited out, no such node":    {podOf("delete-uid-1-1", "n1", byForce), nil, "", "", time.Time{}},
		"by force, waited out, the node Ready":  {podOf("delete-uid-1-1", "n1", byForce), node(corev1.ConditionTrue), "", "", time.Time{}},
		"by force, waited out, the node is not": {podOf("delete-uid-1-1", "n1", byForce), node(corev1.ConditionUnknown), other, "n1", time.Time{}},
		"by force, before its deadline": {podOf("delete-uid-1-1", "n1", func(p *corev1.Pod) {
			byForce(p)
			p.Status.StartTime = new(metav1.NewTime(now))
		}), node(corev1.ConditionTrue), other, "", now.Add(11*time.Minute + 30*time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []metav1.Object{jobOf(map[string]string{}), pod}
			if tt.pod != nil {
				objects = append(objects, tt.pod)
			}
			if tt.node != nil {
				objects = append(objects, tt.node)
			}
			got := observed(t, objects...)
			if !got.Gated || got.OtherPod != tt.otherPod || got.LostNode != tt.lostNode || !got.RecheckAt.Equal(tt.recheck) {
				t.Errorf("gated %t, other pod %q, lost node %q, recheck at %s", got.Gated, got.OtherPod, got.LostNode, got.RecheckAt)
			}
		})
	}
}

// A live look sees a gated pod before the cache does, and the cache may not show an older pod
// either that still runs.
func TestGateStaysUntilTheCacheShowsItsPod(t *testing.T) {
	live, err := cluster.NewStatic(fake.NewClientset(), []string{namespace}, jobOf(map[string]string{}), podOf(own, "", gated))
	if err != nil {
		t.Fatal(err)
	}
	if got := observedBy(t, live.Cached(), jobOf(map[string]string{})); got.Gated || !got.Unfinished {
		t.Errorf("gated %t, unfinished %t: the gate would go", got.Gated, got.Unfinished)
	}
}

// A webhook has taken away what says whose the pod is.
func TestAPodThatNamesNoClaimIsGated(t *testing.T) {
	pod := podOf(own, "", gated)
	delete(pod.Labels, contract.LabelClaimUID)
	if got := observed(t, jobOf(map[string]string{}), pod); !got.Gated {
		t.Error("its run waits for ever")
	}
}

// A note on the Job that came before the Job controller's count of its pod made that write fail,
// and the controller's next one then met the outcome: an answer 409 in 24 claims.
func TestGateStaysUntilTheJobControllerHasCountedThePod(t *testing.T) {
	for name, tt := range map[string]struct {
		age     time.Duration
		active  int32
		gated   bool
		recheck time.Time
	}{
		"not yet":             {time.Second, 0, false, now.Add(2 * time.Second)},
		"counted":             {time.Second, 1, true, time.Time{}},
		"not, in all of time": {3 * time.Second, 0, true, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			job, pod := jobOf(map[string]string{}), podOf(own, "", gated)
			job.Status.Active, pod.CreationTimestamp = tt.active, metav1.NewTime(now.Add(-tt.age))
			if got := observed(t, job, pod); got.Gated != tt.gated || !got.RecheckAt.Equal(tt.recheck) || !got.Unfinished {
				t.Errorf("gated %t, unfinished %t, recheck at %s", got.Gated, got.Unfinished, got.RecheckAt)
			}
		})
	}
}

// endedOn returns a Job with the outcome of a run whose node has not reported its end.
func endedOn(node string) metav1.Object {
	job := jobOf(map[string]string{})
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	fixture.Record(job, jobs.UIDs(job)[0], func(r *jobs.Record) {
		r.Recorded = &jobs.Outcome{Verdict: contract.Disrupted, Finished: at, MayRunUntil: at.Add(30 * time.Minute), Node: node}
	})
	return job
}

func TestLostNodeOfARunThatHasEnded(t *testing.T) {
	recorded := func() metav1.Object {
		return endedOn("n1")
	}
	leaving := func() metav1.Object {
		job := jobOf(map[string]string{})
		job.DeletionTimestamp = new(metav1.NewTime(now.Add(-59 * time.Minute)))
		return job
	}
	for name, tt := range map[string]struct {
		objects []metav1.Object
		want    string
	}{
		"recorded, its node is not Ready":          {[]metav1.Object{recorded(), node(corev1.ConditionUnknown)}, "n1"},
		"recorded, its node is Ready":              {[]metav1.Object{recorded(), node(corev1.ConditionTrue)}, ""},
		"recorded, its node does not exist":        {[]metav1.Object{recorded()}, ""},
		"not recorded, its node is not Ready":      {[]metav1.Object{leaving(), podOf(own, "n1", byForce), node(corev1.ConditionUnknown)}, "n1"},
		"not recorded, its node reported its end":  {[]metav1.Object{leaving(), podOf(own, "n1", ended), node(corev1.ConditionUnknown)}, ""},
		"recorded without a node, as an older one": {[]metav1.Object{endedOn(""), node(corev1.ConditionUnknown)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := observed(t, tt.objects...); got.LostNode != tt.want || got.Unfinished {
				t.Errorf("lost node %q, unfinished %t", got.LostNode, got.Unfinished)
			}
		})
	}
}

// The Job of a clone is cancelled that would start beside a delete of its source, or after one:
// with it the other claims of its batch, for which it would be confirmed although the clone is not
// wanted.
func TestAGatedCloneIsVoidWhenItsSourceIsDeleted(t *testing.T) {
	source := func(phase corev1.PersistentVolumePhase, deleted bool) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: contract.PVName("uid-a")}, Status: corev1.PersistentVolumeStatus{Phase: phase}}
		if deleted {
			pv.DeletionTimestamp = new(metav1.NewTime(now))
		}
		return pv
	}
	of := func(verb contract.Verb, change func(*corev1.Pod)) *corev1.Pod {
		return podOf("other-uid-a-1", "n1", func(pod *corev1.Pod) {
			pod.Labels[contract.LabelClaimUID], pod.Labels[jobs.LabelVerb] = "uid-a", string(verb)
			change(pod)
		})
	}
	nothing := podOf("nothing", "n1", func(pod *corev1.Pod) { pod.Labels[contract.LabelClaimUID] = "" })
	bound, released := source(corev1.VolumeBound, false), source(corev1.VolumeReleased, false)
	for name, tt := range map[string]struct {
		pv   *corev1.PersistentVolume
		pod  *corev1.Pod
		void bool
	}{
		"its source is bound":            {bound, nothing, false},
		"it is released":                 {released, nothing, false},
		"a delete waits at its gate":     {released, of(contract.Delete, gated), true},
		"a delete is at work":            {bound, of(contract.Delete, func(*corev1.Pod) {}), true},
		"a delete has ended":             {released, of(contract.Delete, ended), false},
		"an expand is at work":           {bound, of(contract.Expand, func(*corev1.Pod) {}), false},
		"its PV is being deleted":        {source(corev1.VolumeReleased, true), nothing, true},
		"it is in use, and was deleted":  {source(corev1.VolumeBound, true), nothing, false},
		"its PV does not exist any more": {&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "another"}}, nothing, true},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobOf(map[string]string{jobs.AnnRecord: `{"version":1,"sources":["` + contract.PVName("uid-a") + `"]}`})
			got := observed(t, job, podOf(own, "", gated), tt.pv, tt.pod)
			if got.Void != tt.void || !got.Clones || !got.Gated {
				t.Errorf("void %t, clones %t, gated %t", got.Void, got.Clones, got.Gated)
			}
		})
	}
}
