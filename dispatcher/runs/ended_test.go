package runs_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// jobOf returns a Job of this verb that has not ended.
func jobOf(verb contract.Verb, describes bool) *batchv1.Job {
	job := jobThat("", "")
	job.Labels = map[string]string{jobs.LabelVerb: string(verb), contract.LabelClaimUID: fixture.UID}
	fixture.Record(job, fixture.UID, func(r *jobs.Record) { r.DescribesPV = describes })
	return job
}

func TestEndedByItsNodeMeansThatNoPodOfTheJobCanRun(t *testing.T) {
	running := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	waiting := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending}}
	lost := &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodUnknown}}
	suspended := jobThat(batchv1.JobSuspended, "")
	provision, deletion, describing := jobOf(contract.Provision, false), jobOf(contract.Delete, false), jobOf(contract.Provision, true)
	atWork := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning }
	for name, test := range map[string]struct {
		job  *batchv1.Job
		pods []*corev1.Pod
		want bool
	}{
		"new":                                  {jobThat("", ""), nil, false},
		"its pod ended, no verdict yet":        {provision, []*corev1.Pod{exited(0, "")}, false},
		"it is done, its pod has not ended":    {deletion, []*corev1.Pod{exited(0, "", atWork)}, true},
		"it failed, its pod has not ended":     {deletion, []*corev1.Pod{exited(75, "", atWork)}, false},
		"it is done, and so is another pod":    {deletion, []*corev1.Pod{exited(0, "", atWork), exited(0, "")}, false},
		"it wrote a PV, its pod has not ended": {provision, []*corev1.Pod{exited(0, "", atWork)}, false},
		"it described a PV":                    {describing, []*corev1.Pod{exited(0, "", atWork)}, true},
		"about to fail, its pod terminating":   {jobThat(batchv1.JobFailureTarget, ""), []*corev1.Pod{running}, false},
		"suspended":                            {suspended, nil, false},
		"complete":                             {jobThat(batchv1.JobComplete, ""), nil, true},
		"failed":                               {failed(), nil, true},
		"its sidecar runs on":                  {jobThat("", ""), []*corev1.Pod{exited(0, "", beside(corev1.PodRunning))}, true},
		"its sidecar cannot start":             {jobThat("", ""), []*corev1.Pod{exited(75, "", beside(corev1.PodPending))}, true},
		"its sidecar runs on, and another pod": {jobThat("", ""), []*corev1.Pod{exited(0, "", beside(corev1.PodRunning)), running}, false},
		"deleted, its sidecar runs on":         {terminating(jobThat("", "")), []*corev1.Pod{exited(0, "", beside(corev1.PodRunning))}, true},
		"deleted, its pod runs":                {terminating(jobThat("", "")), []*corev1.Pod{exited(0, ""), running}, false},
		"deleted, its pod waits":               {terminating(jobThat("", "")), []*corev1.Pod{waiting}, false},
		"deleted, its node is lost":            {terminating(jobThat("", "")), []*corev1.Pod{lost}, false},
		"deleted, its pods have ended":         {terminating(jobThat("", "")), []*corev1.Pod{exited(0, ""), exited(1, "")}, true},
		"deleted, its pod without a trace":     {counted(terminating(jobThat("", ""))), nil, true},
	} {
		if got := runs.HasEnded(test.job, test.pods, ended); got != test.want {
			t.Errorf("%s: Ended = %v", name, got)
		}
	}
	never := terminating(jobThat("", ""))
	if runs.HasEnded(never, nil, ended.Add(14*time.Second)) || !runs.HasEnded(never, nil, ended.Add(15*time.Second)) {
		t.Error("a Job that was deleted while its first pod may be under way")
	}
}
