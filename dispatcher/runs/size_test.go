package runs_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// expanded returns a Job that was to give a volume 3Gi, and its pod that ended with this message.
func expanded(verb contract.Verb, code int32, message string) (*batchv1.Job, *corev1.Pod) {
	job := &batchv1.Job{}
	job.Name = jobs.Name(verb, fixture.UID, 1)
	job.Labels = map[string]string{jobs.LabelVerb: string(verb), contract.LabelClaimUID: fixture.UID}
	fixture.Record(job, fixture.UID, func(r *jobs.Record) { r.Hash = "3221225472" })
	kind := batchv1.JobComplete
	if code != 0 {
		kind = batchv1.JobFailed
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
	pod := &corev1.Pod{}
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.Container, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message},
	}}}
	return job, pod
}

func TestExpandReachedTheReportedOrTheRequestedSize(t *testing.T) {
	ours := `{"uid":"` + fixture.UID + `","code":0,"capacity":`
	for name, test := range map[string]struct {
		verb    contract.Verb
		code    int32
		message string
		want    string // empty if it is unknown
		short   bool
	}{
		"silence":                  {contract.Expand, 0, "", "3Gi", false},
		"a quantity":               {contract.Expand, 0, ours + `"4Gi"}`, "4Gi", false},
		"bytes":                    {contract.Expand, 0, ours + `4294967296,"pending":"a rescan"}`, "4Gi", false},
		"amid noise":               {contract.Expand, 0, strings.Repeat("+ set -x\n", 200) + ours + `"4Gi"}` + "\nclaim: done\n", "4Gi", false},
		"less than was asked for":  {contract.Expand, 0, ours + `"2Gi"}`, "2Gi", true},
		"of another volume":        {contract.Expand, 0, `{"uid":"other","code":0,"capacity":"4Gi"}`, "3Gi", false},
		"of a failure":             {contract.Expand, 0, `{"uid":"` + fixture.UID + `","code":75,"capacity":"4Gi"}`, "3Gi", false},
		"no quantity":              {contract.Expand, 0, ours + `"much"}`, "3Gi", false},
		"nothing":                  {contract.Expand, 0, ours + `"0"}`, "3Gi", false},
		"a run that failed":        {contract.Expand, 75, ours + `"4Gi"}`, "", false},
		"another verb's":           {contract.Delete, 0, ours + `"4Gi"}`, "", false},
		"the last of several says": {contract.Expand, 0, ours + `"4Gi"}` + "\n" + ours + `"5Gi"}`, "5Gi", false},
	} {
		t.Run(name, func(t *testing.T) {
			job, pod := expanded(test.verb, test.code, test.message)
			outcome, record := runs.Read(job, []*corev1.Pod{pod}, time.Time{}), runs.RecordOf(job, fixture.UID)
			got := ""
			if reached := record.Reached(outcome); reached != nil {
				got = reached.String()
			}
			if got != test.want || record.Short(outcome) != test.short {
				t.Errorf("reached %q, short %t, want %q, %t", got, record.Short(outcome), test.want, test.short)
			}
		})
	}
}

// A hash that is not a size was not written by the dispatcher.
func TestDamagedSizeIsUnknown(t *testing.T) {
	job, pod := expanded(contract.Expand, 0, "")
	fixture.Record(job, fixture.UID, func(r *jobs.Record) { r.Hash = "x" })
	record := runs.RecordOf(job, fixture.UID)
	if outcome := runs.Read(job, []*corev1.Pod{pod}, time.Time{}); record.Reached(outcome) != nil || record.Short(outcome) {
		t.Errorf("a size was read from a damaged Job: %v", record.Reached(outcome))
	}
}
