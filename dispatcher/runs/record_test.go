package runs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestRecordOfReadsBackWhatBuildWrote(t *testing.T) {
	cfg := fixture.Config(t, "Delete", nil)
	c := fixture.Claim(fixture.Annotated("volume.kubernetes.io/selected-node", "node-1"))
	p := fixture.Provision(cfg, c)
	p.Number, p.Attempt = 12, 7
	want := runs.Record{
		Verb: contract.Provision, UIDs: []string{fixture.UID}, Number: 12, Revision: cfg.Source.Revision(), Held: true,
		Record: jobs.Record{
			ClaimUID: fixture.UID, Namespace: "app", Name: "data", Class: "gold", ReclaimPolicy: "Delete", Size: p.Request.Size,
			Attempt: 7, Hash: p.Hash, Node: "node-1", NothingBefore: true,
		},
	}
	if diff := cmp.Diff(want, runs.RecordOf(fixture.Build(t, p), fixture.UID)); diff != "" {
		t.Errorf("provision (-want +got):\n%s", diff)
	}
	pv := fixture.PV(t)
	pv.UID = types.UID("the-pv")
	d := fixture.Build(t, jobs.Plan{Config: cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 3, Attempt: 2, After: 12, AnyNode: true})
	want = runs.Record{
		Verb: contract.Delete, UIDs: []string{fixture.UID}, Number: 3, Revision: cfg.Source.Revision(), Held: true,
		Record: jobs.Record{
			ClaimUID: fixture.UID, Namespace: "app", Name: "data", Class: "gold", ReclaimPolicy: "Delete", Size: pv.Spec.Capacity.Storage().Value(),
			Attempt: 2, After: 12, Node: "node-1", AnyNode: true, Volume: "the-pv",
		},
	}
	if diff := cmp.Diff(want, runs.RecordOf(d, fixture.UID)); diff != "" {
		t.Errorf("delete (-want +got):\n%s", diff)
	}
	d.Finalizers = nil
	if runs.RecordOf(d, fixture.UID).Held {
		t.Error("a released Job is no record any more")
	}
}

func TestOutcomeSurvivesItsJob(t *testing.T) {
	want := runs.Read(failed(), []*corev1.Pod{exited(65, "claim: ünfit \"quoted\"\nnoise", disrupted)}, now)
	job := &batchv1.Job{}
	job.Name = "no-number-here"
	fixture.Record(job, "", func(r *jobs.Record) { r.Recorded = &want })
	got := runs.RecordOf(job, "")
	if got.Number != 0 || got.Recorded == nil {
		t.Fatalf("read back %+v", got)
	}
	if diff := cmp.Diff(want, *got.Recorded); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
