package runs_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Each way in which an unfinished Job makes no progress, and what is reported of it.
func TestStuckJobNamesCauseAndRemedy(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	job := func(change func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start)}}
		j.Spec.Template.Spec.ActiveDeadlineSeconds = new(int64(540))
		if change != nil {
			change(j)
		}
		return j
	}
	pod := func(change func(*corev1.Pod)) []*corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", CreationTimestamp: metav1.NewTime(start)}}
		p.Spec.NodeName = "node7"
		p.Status.Phase = corev1.PodPending
		change(p)
		return []*corev1.Pod{p}
	}
	waiting := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "provisioner", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
			}}
		}
	}
	initialising := func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name: "copy", ContainerID: "containerd://1", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	}
	byForce := func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(start)), new(int64(0))
		p.Status.Phase = corev1.PodRunning
	}
	deleted := func(j *batchv1.Job) { j.DeletionTimestamp = new(metav1.NewTime(start)) }
	gated := func(p *corev1.Pod) {
		p.Spec.NodeName, p.Spec.SchedulingGates = "", []corev1.PodSchedulingGate{{Name: jobs.GateConfirm}}
	}
	tests := map[string]struct {
		job     *batchv1.Job
		pods    []*corev1.Pod
		warning *runs.Warning
		after   time.Duration
		want    *runs.Stuck
		look    time.Duration // after the start, 0 for when something changes
	}{
		"no pod yet": {job: job(nil), after: time.Second, look: 10 * time.Second},
		"no pod, refused at admission": {
			job: job(nil), after: 11 * time.Second, look: 21 * time.Second,
			warning: &runs.Warning{Reason: "FailedCreate", Note: "violates PodSecurity"},
			want:    &runs.Stuck{Reason: "FailedCreate", Note: reason.Note{Cause: "its pod could not be created: violates PodSecurity"}, Unstarted: true},
		},
		"no pod, each try of it under another name": {
			job:   job(func(j *batchv1.Job) { j.Name = "provision-1-1" }),
			after: 11 * time.Second, look: 21 * time.Second,
			warning: &runs.Warning{Reason: "FailedCreate", Note: `pods "provision-1-1-x7k2p" is forbidden: exceeded quota`},
			want:    &runs.Stuck{Reason: "FailedCreate", Note: reason.Note{Cause: `its pod could not be created: pods "provision-1-1" is forbidden: exceeded quota`}, Unstarted: true},
		},
		"no pod, nobody knows why": {
			job: job(nil), after: 11 * time.Second, look: 21 * time.Second,
			want: &runs.Stuck{Unstarted: true},
		},
		"no node fits": {
			job: job(nil), pods: pod(func(p *corev1.Pod) {
				p.Spec.NodeName, p.Spec.NodeSelector = "", map[string]string{"storage": "yes", "disk": "ssd"}
				p.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available",
				}}
			}),
			want: &runs.Stuck{
				Reason: "Unschedulable", Unstarted: true,
				Note: reason.Note{Cause: "no node fits its pod: 0/2 nodes are available; its node selector is disk=ssd,storage=yes"},
			},
		},
		"the image cannot be pulled": {
			job: job(nil), pods: pod(waiting("ErrImageNeverPull", "not present")),
			want: &runs.Stuck{Reason: "ErrImageNeverPull", Note: reason.Note{Cause: "its container provisioner does not start: not present"}, Unstarted: true},
		},
		"a Secret is missing": {
			job: job(nil), pods: pod(waiting("CreateContainerConfigError", `secret "s" not found`)),
			want: &runs.Stuck{Reason: "CreateContainerConfigError", Note: reason.Note{Cause: `its container provisioner does not start: secret "s" not found`}, Unstarted: true},
		},
		"its container is being made": {job: job(nil), pods: pod(waiting("ContainerCreating", "")), look: 10 * time.Second},
		"a volume of it cannot be mounted": {
			job: job(nil), pods: pod(waiting("ContainerCreating", "")), after: 15 * time.Second, look: 25 * time.Second,
			warning: &runs.Warning{Reason: "FailedMount", Note: `secret "f" not found`},
			want:    &runs.Stuck{Reason: "FailedMount", Note: reason.Note{Cause: `its pod does not start on the node node7: secret "f" not found`}, Unstarted: true},
		},
		"an init container is at work": {job: job(nil), pods: pod(initialising), after: time.Hour},
		"an init container has worked, and the image cannot be pulled": {
			job: job(nil), pods: pod(func(p *corev1.Pod) {
				waiting("ErrImagePull", "not found")(p)
				initialising(p)
			}),
			want: &runs.Stuck{Reason: "ErrImagePull", Note: reason.Note{Cause: "its container provisioner does not start: not found"}, Unstarted: true},
		},
		"it is at work, and the image of a sidecar cannot be pulled": {
			job: job(nil), after: time.Hour, pods: pod(func(p *corev1.Pod) {
				waiting("ErrImagePull", "not found")(p)
				p.Status.ContainerStatuses[0].Name = "proxy"
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
					Name: "provisioner", ContainerID: "containerd://2", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				})
			}),
		},
		"it waits for its gate": {job: job(nil), pods: pod(gated), after: time.Hour},
		"it is deleted with the pod that waits for its gate": {
			job: job(deleted), after: time.Hour, pods: pod(func(p *corev1.Pod) {
				gated(p)
				p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Controller: new(true)}}
			}),
		},
		"it was deleted without the pod that waits for its gate": {
			job: job(deleted), pods: pod(gated),
			want: &runs.Stuck{
				Reason: "RunNotConfirmed", Unstarted: true,
				Note: reason.Note{
					Cause:  "it was deleted without its pod. The pod still has its scheduling gate, and no controller starts or deletes it",
					Remedy: "kubectl -n ns delete pod p",
				},
			},
		},
		"it runs": {job: job(nil), pods: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }), after: time.Hour},
		"its pod terminates": {
			job: job(nil), pods: pod(func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(start)) }), look: 30 * time.Second,
		},
		"its node does not answer": {
			job: job(nil), pods: pod(func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(start)) }), after: time.Minute,
			want: &runs.Stuck{
				Reason: "WaitingForNode", NodeLost: true,
				Note: reason.Note{
					Cause:  "its pod p was deleted, but the node node7 does not confirm that it has ended",
					Remedy: "bring the node back. If the node is shut down for certain, taint it: kubectl taint nodes node7 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
				},
			},
		},
		"deleted by force a moment ago": {job: job(nil), pods: pod(byForce), look: 30 * time.Second},
		"deleted by force, and its node does not tell": {
			job: job(nil), pods: pod(byForce), after: time.Minute,
			want: &runs.Stuck{
				Reason: "WaitingForNode", NodeLost: true, GiveUp: true,
				Note: reason.Note{Cause: "its pod p was force-deleted, and the node node7 does not confirm that it has ended"},
			},
		},
		"a queue has held it past its timeout": {
			job: job(func(j *batchv1.Job) { j.Spec.Suspend = new(true) }), after: 600 * time.Second,
			want: &runs.Stuck{
				Reason: "JobSuspended", Unstarted: true, GiveUp: true,
				Note: reason.Note{Cause: "the Job is suspended, by a queue without room for it or by a user"},
			},
		},
		"a queue holds it": {
			job: job(func(j *batchv1.Job) { j.Spec.Suspend = new(true) }), look: 600 * time.Second,
			want: &runs.Stuck{
				Reason: "JobSuspended", Unstarted: true,
				Note: reason.Note{Cause: "the Job is suspended, by a queue without room for it or by a user"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, look := runs.StuckOf(tt.job, tt.pods, tt.warning, start.Add(tt.after))
			if tt.want != nil && len(tt.pods) > 0 {
				tt.want.Node = tt.pods[0].Spec.NodeName // whose kubelet says it, if any
			}
			if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if tt.want != nil && tt.want.Unstarted && !tt.want.GiveUp && tt.look == 0 {
				tt.look = 600 * time.Second // when it is given up
			}
			if want := start.Add(tt.look); tt.look != 0 && !look.Equal(want) || tt.look == 0 && !look.IsZero() {
				t.Errorf("look again at %s, want %s", look, want)
			}
		})
	}
}

// Only what Kubernetes says, and not silence or a queue, is a reason for other Jobs to wait.
func TestCauseIsTheSameForJobsThatCannotStart(t *testing.T) {
	for name, test := range map[string]struct {
		stuck *runs.Stuck
		want  string
	}{
		"it makes progress":         {},
		"silence":                   {&runs.Stuck{Unstarted: true}, ""},
		"no node takes it":          {&runs.Stuck{Reason: "Unschedulable", Unstarted: true}, "Unschedulable"},
		"the image":                 {&runs.Stuck{Reason: "ErrImagePull", Unstarted: true}, "ErrImagePull"},
		"the image, a moment later": {&runs.Stuck{Reason: "ImagePullBackOff", Unstarted: true}, "ErrImagePull"},
		"a quota":                   {&runs.Stuck{Reason: "FailedCreate", Unstarted: true}, "FailedCreate"},
		"after an init container":   {&runs.Stuck{Reason: "ErrImagePull"}, ""},
		"a scheduling gate":         {&runs.Stuck{Reason: "SchedulingGated", Unstarted: true}, ""},
		"a pod that was left":       {&runs.Stuck{Reason: "RunNotConfirmed", Unstarted: true}, ""},
		"a queue":                   {&runs.Stuck{Reason: "JobSuspended", Unstarted: true}, ""},
		"a queue, for too long":     {&runs.Stuck{Reason: "JobSuspended", Unstarted: true, GiveUp: true}, ""},
		"a node that is lost":       {&runs.Stuck{Reason: "WaitingForNode", NodeLost: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.stuck.Cause(); got != test.want {
				t.Errorf("the cause is %q, want %q", got, test.want)
			}
		})
	}
}
