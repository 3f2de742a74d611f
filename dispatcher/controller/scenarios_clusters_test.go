package controller_test

import (
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// What other controllers of a cluster do, as docs/clusters.md describes it.

// A policy engine gives each Job that is created a time to live. A Job is a record, which outlives
// that time by its finalizer.
func TestRecordBeforeStorageOutlivesATTLThatAPolicySets(t *testing.T) {
	for name, ttl := range map[string]int32{"at once": 0, "after a minute": 60} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Script(fakecluster.Halfway(75), fakecluster.Halfway(65)))
				set := w.stripWrites(func(verb string, obj fakecluster.Object) bool {
					job, isJob := obj.(*batchv1.Job)
					if !isJob || verb != "create" {
						return false
					}
					job.Spec.TTLSecondsAfterFinished = new(ttl)
					return true
				})
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("it has failed twice", time.Minute, func() bool { return w.Claim("data").Annotations[contract.AnnExitCode] == "65" })
				w.Advance(5 * time.Minute)
				if held := w.HeldRecords(); len(held) == 0 {
					w.T.Error("no record of the volume that exists is held")
				}
				w.MustShow(map[string]string{"attempts": "2"})
				w.Until("the claim is bound", 10*time.Minute, w.IsBound("data"))
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Until("nothing is left", 10*time.Minute, w.Empty)
				w.MustRun("provision", "provision", "provision", "delete")
				if *set != 4 {
					w.T.Errorf("the policy has set the time of %d Jobs", *set)
				}
			})
		})
	}
}

// The scheduler follows the class, and knows a node's operating system by its label.
func TestAllowedTopologiesMayNameTheOperatingSystem(t *testing.T) {
	for _, runOn := range []string{"any", "selected-node"} {
		t.Run(runOn, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.chosenClass(fakecluster.Works, []string{"node-1", "node-2"}, "run-on", runOn)
				for node, system := range map[string]string{"node-1": "windows", "node-2": "linux"} {
					fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", node), func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = system })
				}
				fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"), func(c *storagev1.StorageClass) {
					c.AllowedTopologies = []corev1.TopologySelectorTerm{{
						MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelOSStable, Values: []string{"linux"}}},
					}}
				})
				w.Start()
				w.CreateClaim("data")
				w.Until("the claim is bound", 30*time.Second, w.IsBound("data"))
				if got := w.where(); !slices.Equal(got, []string{"provision on node-2"}) {
					w.T.Errorf("ran %v", got)
				}
			})
		})
	}
}

// A GitOps tool marks what it has applied, and deletes what bears its mark and is not in the
// repository.
func TestMarksOfTheConfigMapAreOnNothingThatIsCreatedFromIt(t *testing.T) {
	const label, annotation = "app.kubernetes.io/instance", "argocd.argoproj.io/tracking-id"
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold"), func(cm *corev1.ConfigMap) {
			cm.Labels[label] = "storage"
			fakecluster.Annotate(cm, annotation, "storage:/ConfigMap:flex-provisioner/gold")
		})
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", 10*time.Second, w.IsBound("data"))
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		kinds := map[string]int{}
		for _, c := range w.Server.History() {
			if c.Verb != "create" || c.By == fakecluster.Admin {
				continue
			}
			kinds[c.Resource]++
			if c.Now.GetLabels()[label] != "" || c.Now.GetAnnotations()[annotation] != "" {
				w.T.Errorf("the %s %s has the labels %v, and the annotations %v", c.Resource, c.Name, c.Now.GetLabels(), c.Now.GetAnnotations())
			}
		}
		for _, kind := range []string{"jobs", "pods", "controllerrevisions", "persistentvolumes"} {
			if kinds[kind] == 0 {
				w.T.Errorf("created were %v: no %s", kinds, kind)
			}
		}
	})
}

// saved is the PV of a claim as a backup has it. The claim and the PV no longer exist, and the volume
// does.
func (w *world) saved(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	w.setPolicy(claim, corev1.PersistentVolumeReclaimRetain)
	w.Advance(time.Minute)
	pv := w.PVOf(claim)
	fakecluster.Delete(w, fakecluster.User, claim)
	w.Advance(time.Minute)
	fakecluster.Delete(w, fakecluster.Admin, w.PVOf(claim))
	w.Until("the PV no longer exists", time.Minute, func() bool { return w.PVOf(claim) == nil })
	w.Advance(time.Hour)
	out := &corev1.PersistentVolume{Spec: *pv.Spec.DeepCopy()}
	out.Name, out.Labels, out.Annotations, out.Finalizers = pv.Name, pv.Labels, pv.Annotations, pv.Finalizers
	return out
}

// Velero restores a retained PV without the UID of its claim, and the claim, which names it. The
// claim has another UID than the volume.
func TestARestoredClaimGetsItsRestoredVolumeAndNoOther(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolume){
		"by Velero":          func(*corev1.PersistentVolume) {},
		"by an older Velero": func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnProvisionedBy) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpExpandableGold(fakecluster.Works)
				w.Start()
				claim := w.provisioned("data")
				pv := w.saved(claim)
				pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.ResourceVersion = "", ""
				change(pv)
				fakecluster.Create(w, fakecluster.Admin, pv)
				again := w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = pv.Name })
				w.Until("the restored claim is bound", time.Minute, func() bool { return w.Claim("data").Status.Phase == corev1.ClaimBound })
				w.Advance(time.Hour)
				w.MustRun("provision")
				if got := w.Claim("data").Spec.VolumeName; got != pv.Name || again.UID == claim.UID {
					w.T.Errorf("the claim %s, which was %s, is bound to %s", again.UID, claim.UID, got)
				}
				w.requestSize("2Gi")
				w.Until("it has grown", time.Minute, func() bool { return w.Claim("data").Status.Capacity.Storage().String() == "2Gi" })
				fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
				w.Advance(time.Hour)
				w.MustRun("provision", "expand")
				if len(w.Storage) != 1 {
					w.T.Errorf("%d volumes are left", len(w.Storage))
				}
				w.setPolicy(claim, corev1.PersistentVolumeReclaimDelete)
				w.Until("the volume is deleted", time.Minute, w.Empty)
				w.MustRun("provision", "expand", "delete")
			})
		})
	}
}

// A PV is restored as it was. Its claim comes back with another UID, or not at all: to Kubernetes
// the PV is released.
func TestARestoredPVThatNamesItsFormerClaimIsReleased(t *testing.T) {
	for policy, runs := range map[corev1.PersistentVolumeReclaimPolicy][]string{
		corev1.PersistentVolumeReclaimRetain: {"provision"},
		corev1.PersistentVolumeReclaimDelete: {"provision", "delete"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Works)
				w.Start()
				pv := w.saved(w.provisioned("data"))
				pv.Spec.PersistentVolumeReclaimPolicy = policy
				fakecluster.Create(w, fakecluster.Admin, pv)
				w.Advance(time.Hour)
				w.MustRun(runs...)
				if len(w.Storage) != 2-len(runs) {
					w.T.Errorf("%d volumes are left", len(w.Storage))
				}
			})
		})
	}
}
