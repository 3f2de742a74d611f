package controller_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// dropped lets the dispatcher find these namespaces on its lease, after a first look that fails.
func (w *world) dropped(namespaces *atomic.Pointer[[]string]) {
	failed := false
	w.options.NoteNamespaces = func(context.Context) (*coordinationv1.Lease, []string, error) {
		if !failed {
			failed = true
			return nil, nil, errors.New("no answer")
		}
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: fakecluster.ConfigNamespace, Name: "lease"}}, *namespaces.Load(), nil
	}
}

// renewed deletes the class silver and creates it anew, with its config in the dispatcher's
// --namespace.
func (w *world) renewed() {
	silver := fakecluster.Get[*storagev1.StorageClass](w, "", "silver")
	fakecluster.Delete(w, fakecluster.Admin, silver)
	silver.Parameters, silver.ResourceVersion, silver.UID, silver.CreationTimestamp = nil, "", "", metav1.Time{}
	fakecluster.Create(w, fakecluster.Admin, silver)
	w.CreateConfig("silver", "silver")
}

// The Job of a claim runs in a namespace that a restarted dispatcher does not serve any more.
func TestOneRunPerClaimWhenItsNamespaceIsNotServedAnyMore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.twoNamespaces()
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: 5 * time.Minute, Does: fakecluster.Halfway(75)}
		w.Start()
		claim := w.CreateClaim("data", ofSilver)
		w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.Stop()
		w.Advance(time.Second)
		w.renewed()
		w.Advance(time.Second)
		var lost atomic.Pointer[[]string]
		lost.Store(&[]string{"team"})
		w.options.Namespaces = []string{fakecluster.ConfigNamespace}
		w.dropped(&lost)
		w.Start()
		w.CreateClaim("younger", ofSilver)
		w.Until("a claim that is younger than the class is launched", time.Minute, func() bool { return len(w.CreatedJobs("")) == 2 })
		w.Advance(time.Hour)
		if n := w.jobsOf(claim); n != 1 {
			w.T.Errorf("%d Jobs", n)
		}
		w.MustEmitSome(onData, "NamespaceNotServed", "team", "--config-namespaces", "flex-provisioner.io/namespaces", "lease")
		w.MustEmitSome("Lease/lease", "NamespaceNotServed", "team", "flex-provisioner.io/namespaces")
		lost.Store(&[]string{}) // an administrator has taken it out of the annotation
		w.Until("the claim is served again", 2*time.Minute, func() bool { return w.jobsOf(claim) == 2 })
	})
}

// The last leader has created a Job that the new leader's cache does not show when it begins to
// lead.
func TestANewLeaderWaitsForTheJobsOfTheLastOne(t *testing.T) {
	for name, test := range map[string]struct {
		version             string // of the list
		behind, least, most time.Duration
	}{
		"a moment":                            {"1000", 2 * time.Second, 2 * time.Second, 3 * time.Second},
		"for longer than 5 s":                 {"1000", time.Minute, 5 * time.Second, 6 * time.Second},
		"not, and the Job was deleted by now": {"1", time.Minute, 0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.CreateClaim("data")
				w.Advance(time.Second)
				w.options.ListJobs = func(_ context.Context, ns string) (*metav1.PartialObjectMetadataList, error) {
					w.Server.DelayWatches("jobs", true)
					fakecluster.Create(w, "the last leader", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
						Name: "provision-another-1", Namespace: ns, Labels: map[string]string{
							config.LabelManagedBy: config.ManagedBy, config.LabelProvisioner: config.ProvisionerLabel(contract.ProvisionerName),
						},
					}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}})
					list := w.jobsIn(ns)
					list.ResourceVersion = test.version
					return list, nil
				}
				w.Start()
				w.Advance(test.behind)
				w.Server.DelayWatches("jobs", false)
				w.Until("the claim is bound", time.Minute, w.IsBound("data"))
				stored := w.CreatedJobs(contract.Provision)[0].At.Sub(w.Server.History()[0].At) - time.Second
				if stored < test.least || stored > test.most {
					w.T.Errorf("the first Job was created %s after the leader began", stored)
				}
			})
		})
	}
}

// A new leader that may not list starts all the same.
func TestANewLeaderThatCannotListJobsLeads(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.options.ListJobs = func(context.Context, string) (*metav1.PartialObjectMetadataList, error) {
			return nil, errors.New("no answer")
		}
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
	})
}

// jobsOf returns how many Jobs were created for a claim.
func (w *world) jobsOf(claim *corev1.PersistentVolumeClaim) int {
	n := 0
	for _, job := range w.CreatedJobs("") {
		if strings.Contains(job.Name, string(claim.UID)) {
			n++
		}
	}
	return n
}

// jobsIn returns the metadata of the Jobs of a namespace, as the API server lists it.
func (w *world) jobsIn(ns string) *metav1.PartialObjectMetadataList {
	out := &metav1.PartialObjectMetadataList{}
	for _, job := range fakecluster.List[*batchv1.Job](w) {
		if job.Namespace == ns {
			out.Items = append(out.Items, metav1.PartialObjectMetadata{ObjectMeta: job.ObjectMeta})
		}
	}
	return out
}
