package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/configmaps"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

func TestOnlyTunedRowsRaiseOurLimits(t *testing.T) {
	for _, row := range plan.Rows {
		if row.Kind != plan.Ours {
			continue
		}
		raised := slices.ContainsFunc(ourFlags(row, "file"), func(f string) bool { return strings.Contains(f, "qps") || strings.Contains(f, "workers") })
		if raised != row.Tuned {
			t.Errorf("%s: %v", row.Name, ourFlags(row, "file"))
		}
	}
}

func TestARecipeIsServedWithItsOwnConfigAndABaseByItsOwnProgram(t *testing.T) {
	for name, want := range map[string]struct {
		program string
		scripts bool
	}{"recipe": {"flex-dispatcher", true}, "ours-1": {"flex-dispatcher", false}, "base-1": {"flex-dispatcher-base", false}} {
		row, err := plan.RowOf(name)
		if err != nil {
			t.Fatal(err)
		}
		scripts := slices.ContainsFunc(ourFlags(row, "file"), func(f string) bool { return strings.HasPrefix(f, "--script-image=") })
		if program(row) != want.program || scripts != want.scripts {
			t.Errorf("%s: %s %v", name, program(row), ourFlags(row, "file"))
		}
	}
}

// A pod of a recipe that fits no node would wait until the cell's time is over.
func TestARecipeFitsThePlayedNodes(t *testing.T) {
	for _, row := range plan.Rows {
		if row.Class == "" {
			continue
		}
		var recipe corev1.ConfigMap
		text, err := configmaps.Files.ReadFile(row.Class + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "\n---\n") {
			if strings.Contains(part, "kind: ConfigMap") {
				err = yaml.Unmarshal([]byte(part), &recipe)
			}
		}
		key, value, _ := strings.Cut(recipe.Data["node-selector"], "=")
		if err != nil || fakeNode("one").Labels[key] != value || recipe.Data["batch-size"] != "16" || recipe.Data["script"] == "" {
			t.Errorf("%s: %v, %v", row.Class, recipe.Data, err)
		}
	}
}

func isComplete(line *report.Timeline) bool {
	select {
	case <-line.Complete():
		return true
	default:
		return false
	}
}

func TestTheWatcherNotesBoundClaimsCompleteJobsAndDeletedPVs(t *testing.T) {
	now := time.Now()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Name: "one"}}}
	for name, tt := range map[string]struct{ not, done func(*watcher) }{
		"claim": {
			func(w *watcher) { w.seeClaim(claim) },
			func(w *watcher) {
				bound := claim.DeepCopy()
				bound.Status.Phase = corev1.ClaimBound
				w.seeClaim(bound)
			},
		},
		"Job": {
			func(w *watcher) { w.seeJob(job) },
			func(w *watcher) {
				complete := job.DeepCopy()
				complete.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
				w.seeJob(complete)
			},
		},
		"PV":                   {func(w *watcher) { w.seeNoPV(&corev1.PersistentVolume{}) }, func(w *watcher) { w.seeNoPV(pv) }},
		"PV, seen by a relist": {func(*watcher) {}, func(w *watcher) { w.seeNoPV(cache.DeletedFinalStateUnknown{Obj: pv}) }},
	} {
		w, line := &watcher{}, report.NewTimeline(1)
		tt.done(w) // before anything is measured
		w.provisioned(line)
		w.deleted(line)
		line.Asked("one", now)
		if tt.not(w); isComplete(line) {
			t.Errorf("%s: noted too early", name)
		}
		if tt.done(w); !isComplete(line) {
			t.Errorf("%s: not noted", name)
		}
	}
}

func TestThePlayerEndsAPodOnceAndRemovesADeletedOne(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "u"},
		Spec:       corev1.PodSpec{NodeName: nodeName(0), Containers: []corev1.Container{{Name: "job"}}},
	}
	client := fake.NewClientset(pod)
	p := &player{node: client, container: client, pods: cache.NewStore(cache.MetaNamespaceKeyFunc), finished: map[types.UID]bool{}}
	store := func(pod *corev1.Pod) {
		if err := p.pods.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	store(pod)
	for range 2 { // the cache is not up to date the second time
		if err := p.playPod(t.Context(), "ns/pod"); err != nil {
			t.Fatal(err)
		}
	}
	now, err := client.CoreV1().Pods("ns").Get(t.Context(), "pod", metav1.GetOptions{})
	if err != nil || now.Status.Phase != corev1.PodSucceeded {
		t.Errorf("%v, %v", now.Status, err)
	}
	deleted := now.DeepCopy()
	deleted.DeletionTimestamp = new(metav1.Now())
	store(deleted)
	if err := p.playPod(t.Context(), "ns/pod"); err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for _, action := range client.Actions() {
		verbs = append(verbs, action.GetVerb())
	}
	if diff := cmp.Diff([]string{"patch", "get", "delete"}, verbs); diff != "" {
		t.Error(diff)
	}
}

func TestTheCeilingServesAnAnnotatedClaimOnce(t *testing.T) {
	o := &ceiling{work: make(chan *corev1.PersistentVolumeClaim, 3), served: map[types.UID]bool{}}
	claim := claimOf("one", className, nil)
	o.see(claim)
	annotated := claimOf("one", className, map[string]string{annProvisioner: ceilingProvisioner})
	o.see(annotated)
	o.see(annotated)
	if len(o.work) != 1 {
		t.Errorf("%d claims are served, want 1", len(o.work))
	}
}

func TestAPVOfAYardstickIsBoundToItsClaimByUID(t *testing.T) {
	claim := claimOf("one", className, nil)
	claim.UID = "u"
	pv := pvOf(claim, "p")
	if pv.Name != "pvc-u" || pv.Spec.ClaimRef.UID != "u" || pv.Spec.StorageClassName != className || pv.Spec.NFS == nil {
		t.Errorf("%v", pv)
	}
}

func TestAllClaimsAreAskedForAndTheFirstErrorIsReturned(t *testing.T) {
	claims := names("claim", 100)
	asked := make(chan string, len(claims))
	broken := errors.New("refused")
	err := atOnce(claims, func(claim string) error {
		asked <- claim
		if claim == "claim-0050" {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || len(asked) != len(claims) {
		t.Errorf("%v, %d asked", err, len(asked))
	}
}

func TestRequestsAreReadFromAllPartsOfTheAuditLog(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "audit"), 0o700); err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(-time.Minute)
	text := `{"verb":"create","user":{"username":"system:serviceaccount:x:one"},"objectRef":{"resource":"pods"},"requestReceivedTimestamp":"` +
		time.Now().Add(-time.Second).UTC().Format(time.RFC3339Nano) + "\"}\n"
	for _, name := range []string{"audit.log", "audit-1.log"} {
		if err := os.WriteFile(filepath.Join(dir, "audit", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{settings: settings{state: dir}}
	counts, err := b.requests(from)
	if err != nil || total(counts) != 2 {
		t.Errorf("%v, %v", counts.Sorted(), err)
	}
	b.state = t.TempDir()
	if _, err := b.requests(from); err == nil {
		t.Error("no error without a log")
	}
}

func TestTheReportIsWrittenBesideTheResultsOfTheCells(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "cells"), 0o700); err != nil {
		t.Fatal(err)
	}
	one := report.Result{Column: plan.Stock, Row: "csi", Claims: 1, Provision: &report.Phase{Asked: []float64{0}, Done: []float64{1}, Took: []float64{1}}}
	if err := writeJSON(filepath.Join(dir, "cells", "stock-csi.json"), one); err != nil {
		t.Fatal(err)
	}
	if err := run(context.WithoutCancel(t.Context()), []string{"report", "-dir", dir, "-machine", "of a test"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "bench.json"))
	var got whole
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil || len(got.Results) != 1 || got.Machine != "of a test" || len(got.Targets) == 0 {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"bench.txt", "bench.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
