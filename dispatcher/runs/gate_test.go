package runs_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

func waiting(gates ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	for _, gate := range gates {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
	}
	return pod
}

func TestGatedPodIsTheOneThatWaitsForTheDispatcher(t *testing.T) {
	leaving, gated := waiting(jobs.GateConfirm), waiting("kueue.x-k8s.io/topology", jobs.GateConfirm)
	deletedByHand(leaving)
	for name, tt := range map[string]struct {
		pods []*corev1.Pod
		want *corev1.Pod
	}{
		"no pod":                         {nil, nil},
		"none with a gate":               {[]*corev1.Pod{waiting(), started()}, nil},
		"only another controller's gate": {[]*corev1.Pod{waiting("kueue.x-k8s.io/topology")}, nil},
		"ours among others":              {[]*corev1.Pod{started(), gated}, gated},
		"ours, and it is being deleted":  {[]*corev1.Pod{leaving}, nil},
		"one beside one that leaves":     {[]*corev1.Pod{leaving, gated}, gated},
	} {
		if got := runs.GatedPod(tt.pods); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// The pod of started has a deadline ten minutes after its start at two minutes before the end, 30 s
// of grace, and a minute for its node's clock.
func TestPodMayRunUntilItsNodeSaysSoOrItIsWaitedOut(t *testing.T) {
	until := ended.Add(9*time.Minute + 30*time.Second)
	unscheduled := func(p *corev1.Pod) { p.Spec.NodeName = "" }
	for name, tt := range map[string]struct {
		pod   *corev1.Pod
		now   time.Time
		may   bool
		until time.Time
	}{
		"gated":                                     {waiting(jobs.GateConfirm), now, true, time.Time{}},
		"running":                                   {started(), now, true, time.Time{}},
		"succeeded":                                 {exited(0, ""), ended, false, time.Time{}},
		"failed":                                    {exited(75, ""), ended, false, time.Time{}},
		"evicted before its container was made":     {exited(137, "", neverMade, because("Evicted", "")), ended, false, time.Time{}},
		"deleted, and its node has not answered":    {started(deletedByHand), now, true, time.Time{}},
		"deleted, and its node has reported":        {exited(143, "", deletedByHand), ended, false, time.Time{}},
		"deleted before it had a node":              {started(deletedByHand, unscheduled), ended, false, time.Time{}},
		"deleted by force before it had a node":     {started(byForce, unscheduled), ended, false, time.Time{}},
		"deleted by force":                          {started(byForce), until.Add(-time.Second), true, until},
		"deleted by force, waited out":              {started(byForce), until, false, until},
		"deleted by force, and its node reported":   {exited(143, "", byForce), ended, false, time.Time{}},
		"collected with its node":                   {started(collected), until.Add(-time.Second), true, until},
		"collected with its node, waited out":       {started(collected), until, false, until},
		"collected, and its node had reported":      {exited(0, "", collected), ended, false, time.Time{}},
		"collected before it had a node":            {started(collected, unscheduled), ended, false, time.Time{}},
		"without a deadline, which another has set": {started(byForce, func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = nil }), ended.Add(-time.Minute), true, ended.Add(-30 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			may, until := runs.MayRun(tt.pod, tt.now)
			if may != tt.may || !until.Equal(tt.until) {
				t.Errorf("got %t until %s, want %t until %s", may, until, tt.may, tt.until)
			}
		})
	}
}

func TestConfirmBeforeLeavesARunItsWholeTime(t *testing.T) {
	start := ended.Add(-time.Minute)
	job := func(changes ...func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{}
		j.Spec.ActiveDeadlineSeconds, j.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(1200)), new(int64(600))
		j.Status.StartTime = new(metav1.NewTime(start))
		for _, change := range changes {
			change(j)
		}
		return j
	}
	for name, tt := range map[string]struct {
		job  *batchv1.Job
		want time.Time
	}{
		"started":             {job(), start.Add(9 * time.Minute)},
		"not started":         {job(func(j *batchv1.Job) { j.Status.StartTime = nil }), time.Time{}},
		"without a deadline":  {job(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = nil }), time.Time{}},
		"with too little yet": {job(func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = new(int64(630)) }), start.Add(-30 * time.Second)},
	} {
		if got := runs.ConfirmBefore(tt.job); !got.Equal(tt.want) {
			t.Errorf("%s: before %s, want %s", name, got, tt.want)
		}
	}
}

// Only a kubelet that runs ends a pod at its deadline.
func TestEndedByItsNodeOrWaitedOutWhileTheNodeIsReady(t *testing.T) {
	node := func(ready corev1.ConditionStatus, taints ...string) *corev1.Node {
		n := &corev1.Node{}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}, {Type: corev1.NodeReady, Status: ready}}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key})
		}
		return n
	}
	for name, tt := range map[string]struct {
		node *corev1.Node
		lost bool
	}{
		"ready":                     {node(corev1.ConditionTrue), false},
		"ready and cordoned":        {node(corev1.ConditionTrue, corev1.TaintNodeUnschedulable), false},
		"not ready":                 {node(corev1.ConditionFalse, corev1.TaintNodeNotReady), true},
		"unreachable":               {node(corev1.ConditionUnknown, corev1.TaintNodeUnreachable), true},
		"it has never said":         {&corev1.Node{}, true},
		"out of service":            {node(corev1.ConditionUnknown, corev1.TaintNodeUnreachable, corev1.TaintNodeOutOfService), false},
		"its Node has been deleted": {nil, false},
	} {
		if got := runs.IsNodeLost(tt.node); got != tt.lost {
			t.Errorf("%s: lost is %t", name, got)
		}
	}
}
