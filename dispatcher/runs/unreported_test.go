package runs_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// started returns a pod that a node has started two minutes before the end, with a deadline of ten
// minutes.
func started(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1", ActiveDeadlineSeconds: new(int64(600))}}
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, new(metav1.NewTime(ended.Add(-2*time.Minute)))
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func byForce(pod *corev1.Pod) {
	deletedByHand(pod)
	pod.DeletionGracePeriodSeconds = new(int64(0))
}

// collected changes a pod as the garbage collector of pods does if their node no longer exists.
func collected(pod *corev1.Pod) {
	byForce(pod)
	pod.Status.Phase = corev1.PodFailed
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"}}
}

func scheduled(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}

// A pod that was removed without its node's report may run until its own deadline. One whose end
// the node has reported does not.
func TestEndedByItsNodeOrWaitedOutByTheDeadline(t *testing.T) {
	created := ended.Add(-5 * time.Minute)
	job := func(changes ...func(*batchv1.Job)) *batchv1.Job {
		j := terminating(jobThat("", ""))
		j.CreationTimestamp, j.Spec.ActiveDeadlineSeconds = metav1.NewTime(created), new(int64(660))
		j.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(600))
		for _, change := range changes {
			change(j)
		}
		return j
	}
	counts := func(j *batchv1.Job) { j.Status.Active = 1 }
	confirmed := func(j *batchv1.Job) {
		j.Annotations = map[string]string{jobs.AnnConfirmed: "the-first"}
	}
	resumed := func(j *batchv1.Job) { j.Status.StartTime = new(metav1.NewTime(created.Add(time.Minute))) }
	failed := func(j *batchv1.Job) {
		j.Status.Conditions = jobThat(batchv1.JobFailed, "PodFailurePolicy").Status.Conditions
	}
	silent := func(pod *corev1.Pod) { pod.Status.StartTime = nil }
	for name, tt := range map[string]struct {
		job  *batchv1.Job
		pods []*corev1.Pod
		want time.Duration // after the end of the Job, 0 if nothing runs
	}{
		"deleted by force":                             {job(), []*corev1.Pod{started(byForce)}, 9*time.Minute + 30*time.Second},
		"deleted by force, the node never told":        {job(), []*corev1.Pod{started(byForce, silent)}, 6*time.Minute + 30*time.Second},
		"the same, of a Job that was suspended before": {job(resumed), []*corev1.Pod{started(byForce, silent)}, 7*time.Minute + 30*time.Second},
		"collected, its node has gone":                 {job(failed), []*corev1.Pod{started(collected)}, 9*time.Minute + 30*time.Second},
		"no trace of it, the Job counts one":           {job(counts), nil, 11*time.Minute + 30*time.Second},
		"an hour of grace": {job(), []*corev1.Pod{started(byForce, func(p *corev1.Pod) {
			p.Spec.TerminationGracePeriodSeconds = new(int64(3600))
		})}, 69 * time.Minute},
		"scheduled late, then its node was cut off": {job(), []*corev1.Pod{started(byForce, silent, scheduled(ended.Add(-time.Second)))}, 11*time.Minute + 29*time.Second},
		"a node's clock that is 9 minutes slow": {job(), []*corev1.Pod{started(byForce, scheduled(ended.Add(-2*time.Minute)), func(p *corev1.Pod) {
			p.Status.StartTime = new(metav1.NewTime(ended.Add(-11 * time.Minute)))
		})}, 9*time.Minute + 30*time.Second},
		"no trace, none counted":           {job(), nil, 0},
		"by force, then the node told":     {job(), []*corev1.Pod{exited(143, "", byForce)}, 0},
		"collected, and the node had told": {job(failed), []*corev1.Pod{exited(0, "", collected)}, 0},
		"deleted, and the node told":       {job(failed), []*corev1.Pod{exited(143, "", deletedByHand)}, 0},
		"deleted before it had a node":     {job(), []*corev1.Pod{started(byForce, func(p *corev1.Pod) { p.Spec.NodeName = "" })}, 0},
		"by force, past its deadline": {job(func(j *batchv1.Job) {
			j.CreationTimestamp = metav1.NewTime(created.Add(-time.Hour))
		}), []*corev1.Pod{started(byForce, func(p *corev1.Pod) { p.Status.StartTime = new(metav1.NewTime(ended.Add(-time.Hour))) })}, -48*time.Minute - 30*time.Second},
		"no trace of the pod that was confirmed": {job(confirmed), nil, 11*time.Minute + 30*time.Second},
		"another pod in the place of the one that was confirmed": {job(confirmed), []*corev1.Pod{started(deletedByHand, func(p *corev1.Pod) {
			p.UID, p.Spec.NodeName = "another", ""
		})}, 11*time.Minute + 30*time.Second},
		"no trace of the pod that was confirmed, another completed the Job": {job(confirmed, func(j *batchv1.Job) { j.Status.CompletionTime = new(metav1.NewTime(ended)) }), nil, 11*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if !runs.HasEnded(tt.job, tt.pods, ended.Add(time.Minute)) {
				t.Fatal("its Job is waited for")
			}
			got := runs.Read(tt.job, tt.pods, ended)
			want := time.Time{}
			if tt.want != 0 {
				want = ended.Add(tt.want)
			}
			if !got.MayRunUntil.Equal(want) {
				t.Errorf("quiet until %s, want %s", got.MayRunUntil, want)
			}
			if named := got.Node != ""; named != (tt.want != 0 && len(tt.pods) > 0 && !runs.HasVanished(tt.job, tt.pods)) {
				t.Errorf("the node is %q", got.Node)
			}
			if tt.want > 0 && got.Verdict != contract.Disrupted && got.Verdict != contract.Unknown {
				t.Errorf("the verdict is %s", got.Verdict)
			}
		})
	}
}

func TestEndedByItsNodeOrWaitedOutUnlessTheJobIsDeleted(t *testing.T) {
	pods := []*corev1.Pod{started(byForce)}
	if runs.HasEnded(jobThat("", ""), pods, ended) {
		t.Error("the Job has ended, and its controller may make another pod")
	}
	if !runs.HasEnded(terminating(jobThat("", "")), pods, ended) {
		t.Error("nobody will ever tell that it has ended")
	}
}

func TestEndedByItsNodeOrWaitedOutForEachClaimOfABatch(t *testing.T) {
	for _, uid := range []string{"one", "two"} {
		got := runs.ReadFor(endedBatch(contract.Provision, 1), uid, []*corev1.Pod{started(collected)}, ended)
		if want := ended.Add(9*time.Minute + 30*time.Second); !got.MayRunUntil.Equal(want) {
			t.Errorf("%s is quiet until %s, want %s", uid, got.MayRunUntil, want)
		}
		if got.Node != "node-1" {
			t.Errorf("%s may run on the node %q", uid, got.Node)
		}
	}
}

// A queue suspended the Job and resumed it, and the second pod never started. The first one may
// have made something.
func TestPodBeforeTheNewestCountsToo(t *testing.T) {
	second := exited(137, "", neverMade, because("DeadlineExceeded", ""))
	second.CreationTimestamp = metav1.NewTime(ended)
	for name, tt := range map[string]struct {
		first *corev1.Pod
		want  contract.Verdict
	}{
		"it ran":         {exited(143, ""), contract.TryAgain},
		"it never ran":   {exited(137, "", neverMade, because("DeadlineExceeded", "")), contract.NotStarted},
		"there was none": {nil, contract.NotStarted},
	} {
		pods := []*corev1.Pod{second}
		if tt.first != nil {
			pods = append(pods, tt.first)
		}
		if got := runs.ReadFor(failed(), "one", pods, ended).Verdict; got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
