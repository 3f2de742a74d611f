package jobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// batchOf returns the plan of a Job for the claims of these UIDs. The last is in another namespace.
func batchOf(cfg config.Config, uids ...string) jobs.Plan {
	plans := make([]jobs.Plan, len(uids))
	for i, uid := range uids {
		plans[i] = fixture.Provision(cfg, fixture.Claim(func(c *corev1.PersistentVolumeClaim) {
			c.UID, c.Name = types.UID(uid), "data-"+uid
			if i == len(uids)-1 {
				c.Namespace = "other"
			}
		}))
		plans[i].Attempt = i + 1
	}
	plan := plans[0]
	plan.With = plans[1:]
	return plan
}

func TestGoldenJobOfABatch(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"batch-size": "3"})
	fixture.Golden(t, "job-batch", fixture.Build(t, batchOf(cfg, "u1", "u2", "u3")))
}

func TestJobOfABatchIsTheRecordOfEachClaim(t *testing.T) {
	cfg := fixture.Config(t, "Delete", nil)
	plan := batchOf(cfg, "u1", "u2", "u3")
	plan.Number = 4
	job := fixture.Build(t, plan)
	for i, one := range append([]jobs.Plan{plan}, plan.With...) {
		want := runs.Record{
			Record: jobs.Record{
				ClaimUID: one.Request.UID, Namespace: one.Request.Namespace, Name: one.Request.Name, Class: "gold", ReclaimPolicy: "Delete", Size: one.Request.Size,
				Attempt: i + 1, Hash: one.Hash, NothingBefore: true,
			},
			Verb: contract.Provision, UIDs: []string{"u1", "u2", "u3"}, Number: 4,
			Revision: cfg.Source.Revision(), Held: true,
		}
		if diff := cmp.Diff(want, runs.RecordOf(job, one.Request.UID)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", one.Request.UID, diff)
		}
		request, pv, err := runs.ReadRequest(job.Spec.Template.Annotations, one.Request.UID)
		if err != nil || request.Name != "data-"+one.Request.UID || pv.Name != "pvc-"+one.Request.UID || string(pv.Spec.ClaimRef.UID) != one.Request.UID {
			t.Errorf("%s is asked for as %+v, %+v, %v", one.Request.UID, request, pv, err)
		}
		if _, found := job.Labels[jobs.LabelMember+one.Request.UID]; !found {
			t.Errorf("no list finds the Job of %s", one.Request.UID)
		}
		if pod := (&corev1.Pod{ObjectMeta: job.Spec.Template.ObjectMeta}); !slices.Contains(jobs.UIDsOfPod(pod), one.Request.UID) {
			t.Errorf("the Job's pod is not one of %s", one.Request.UID)
		}
	}
}

// Without the claims of such a pod, another one could run beside it, and nothing would remove its
// finalizer.
func TestOneRunPerClaimBesideAPodOfAnOlderDispatcher(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		jobs.LabelMember + "u2": "", jobs.LabelMember + "u1": "", contract.LabelClaimUID: "u1",
	}}}
	if got := jobs.UIDsOfPod(pod); !slices.Equal(got, []string{"u1", "u2"}) {
		t.Errorf("it is a pod of %v", got)
	}
	if got := jobs.UIDsOfPod(&corev1.Pod{}); got != nil {
		t.Errorf("a pod of no Job is one of %v", got)
	}
}

// A kubelet may write every annotation of its pods, and create mirror pods with every label.
func TestAKubeletLetsNoPodServeAnotherClaim(t *testing.T) {
	single := fixture.Build(t, batchOf(fixture.Config(t, "Delete", nil), "u1")).Spec.Template.ObjectMeta
	batch := fixture.Build(t, batchOf(fixture.Config(t, "Delete", nil), "u1", "u2", "u3")).Spec.Template.ObjectMeta
	owned := func(kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Controller: new(true)}} }
	}
	says := func(uids string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations = map[string]string{jobs.AnnUIDs: uids} }
	}
	for what, tc := range map[string]struct {
		of     metav1.ObjectMeta
		change func(*corev1.Pod)
		want   []string
	}{
		"its Job's":             {single, owned("Job"), []string{"u1"}},
		"left behind":           {single, func(*corev1.Pod) {}, []string{"u1"}},
		"another claim":         {single, says("victim"), []string{"u1"}},
		"one more":              {single, says("u1,victim"), []string{"u1"}},
		"a mirror pod":          {single, owned("Node"), nil},
		"a batch's":             {batch, owned("Job"), []string{"u1", "u2", "u3"}},
		"one more of a batch":   {batch, says("u1,u2,u3,victim"), []string{"u1"}},
		"one less":              {batch, says("u1,u2"), []string{"u1"}},
		"none":                  {batch, says(""), []string{"u1"}},
		"a mirror of a batch's": {batch, owned("Node"), nil},
	} {
		pod := &corev1.Pod{ObjectMeta: *tc.of.DeepCopy()}
		if tc.change(pod); !slices.Equal(jobs.UIDsOfPod(pod), tc.want) {
			t.Errorf("%s: a pod of %q, want %q", what, jobs.UIDsOfPod(pod), tc.want)
		}
	}
}

// A delete of a volume waits for the pods that clone it. A kubelet writes no labels of its pods, and a
// mirror pod may bear any.
func TestAPodSaysWhichVolumesItClones(t *testing.T) {
	plan := batchOf(fixture.Config(t, "Delete", nil), "u1", "u2", "u3")
	plan.With[0].Request.Source, plan.With[1].Request.Source = &contract.Source{PVName: "pvc-a"}, &contract.Source{PVName: strings.Repeat("long.", 50)}
	pod := &corev1.Pod{ObjectMeta: fixture.Build(t, plan).Spec.Template.ObjectMeta}
	want := []string{jobs.SourceKey("pvc-a"), jobs.SourceKey(strings.Repeat("long.", 50))}
	slices.Sort(want)
	if got := jobs.SourcesOfPod(pod); !slices.Equal(got, want) {
		t.Errorf("it clones %q, want %q", got, want)
	}
	if pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Node", Controller: new(true)}}; jobs.SourcesOfPod(pod) != nil {
		t.Error("a mirror pod clones a volume")
	}
	plan.Verb, plan.With[0].Verb, plan.With[1].Verb = contract.Delete, contract.Delete, contract.Delete
	if got := jobs.SourcesOfPod(&corev1.Pod{ObjectMeta: fixture.Build(t, plan).Spec.Template.ObjectMeta}); got != nil {
		t.Errorf("an undo clones %q", got)
	}
}

func TestBatchHasNoVariableOfASingleClaim(t *testing.T) {
	cfg := fixture.Config(t, "Delete", nil)
	got := variables(t, provisioner(t, fixture.Build(t, batchOf(cfg, "u1", "u2"))))
	shared := []string{"HOME", "FLEX_VERB", "FLEX_STORAGE_CLASS", "FLEX_SERVICE_ACCOUNT", "FLEX_KUBE_API", "FLEX_UNDO", "FLEX_USE_NFS_SERVER", "FLEX_FSTYPE"}
	for name := range got {
		if !slices.Contains(shared, name) {
			t.Errorf("%s=%s", name, got[name])
		}
	}
	if len(got) != len(shared) {
		t.Errorf("the variables are %v", got)
	}
	if alone := variables(t, provisioner(t, fixture.Build(t, batchOf(cfg, "u1")))); alone["FLEX_CLAIM_UID"] != "u1" || alone["FLEX_PV_NAME"] != "pvc-u1" {
		t.Errorf("alone the variables are %v", alone)
	}
}

func TestBatchIsTrimmedToTheSizeOfItsFiles(t *testing.T) {
	cfg := fixture.Config(t, "Delete", nil)
	var uids []string
	for i := range contract.MaxBatch {
		uids = append(uids, fmt.Sprintf("u%02d", i))
	}
	plan := batchOf(cfg, uids...)
	large := strings.Repeat("x", 8<<10)
	plan.With[0].Request.Annotations = map[string]string{"text": large}
	for i := 20; i < len(plan.With); i++ {
		plan.With[i].Request.Annotations = map[string]string{"text": large}
	}
	fits, err := jobs.TrimToSize(plan)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(fits.With); n < 21 || n >= len(plan.With) || fits.With[n-1].Request.UID != uids[n] {
		t.Errorf("%d of %d go along", n, len(plan.With))
	}
	size := func(p jobs.Plan) int {
		a := fixture.Build(t, p).Spec.Template.Annotations
		return len(a[jobs.AnnRequest]) + len(a[jobs.AnnPV])
	}
	if n := size(fits); n > contract.MaxFiles || n < contract.MaxFiles-(20<<10) {
		t.Errorf("the files have %d bytes", n)
	}
	// A request that is too large by itself is kept, and the API server refuses or accepts it.
	plan.Request.Annotations = map[string]string{"text": strings.Repeat("x", contract.MaxFiles)}
	if fits, err = jobs.TrimToSize(plan); err != nil || len(fits.With) != 0 {
		t.Errorf("%d go along, %v", len(fits.With), err)
	}
	if fits, err = jobs.TrimToSize(batchOf(cfg, uids...)); err != nil || len(fits.With) != len(uids)-1 {
		t.Errorf("%d of %d usual requests fit, %v", len(fits.With)+1, len(uids), err)
	}
}
