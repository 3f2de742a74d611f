package run_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// left is a look that has found a volume, of this cluster if nothing else is said.
func left(change func(*audit.Volume)) run.Look {
	v := audit.Volume{UID: claimUID, Volume: "v1", Size: 1 << 30, Namespace: "app", Name: "data", Class: "gold", ClusterUID: clusterID}
	change(&v)
	return run.Look{State: audit.State{ClusterUID: clusterID}, Found: []audit.Finding{{Kind: audit.VolumeLeft, UID: v.UID, Class: cmp.Or(v.Class, "gold"), ListedBy: cmp.Or(v.Class, "gold"), Volume: v}}}
}

// fixing deletes what a look has found, and returns what is said.
func (l *lab) fixing(look run.Look, only ...string) (string, error) {
	var said strings.Builder
	err := l.Fix(l.t.Context(), look, only, func(format string, args ...any) { fmt.Fprintf(&said, format+"\n", args...) })
	return said.String(), err
}

// made returns the Jobs that there are.
func (l *lab) made() []batchv1.Job {
	l.t.Helper()
	list, err := l.client.BatchV1().Jobs("").List(l.t.Context(), metav1.ListOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
	return list.Items
}

func TestAVolumeThatStandsForNothingIsDeletedByAJobOfTheAudit(t *testing.T) {
	earlier := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "delete-" + claimUID + "-2", Labels: map[string]string{
		config.LabelManagedBy: config.ManagedBy, jobs.LabelVerb: "delete",
	}, Annotations: map[string]string{jobs.AnnUIDs: claimUID}}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}}
	others := earlier.DeepCopy()
	others.Name, others.Annotations[jobs.AnnUIDs] = "delete-"+otherUID+"-7", otherUID
	inLab(t, nil, func(l *lab) {
		l.ends(0, "one volume", "")
		gated := l.started
		l.started = func(job *batchv1.Job) {
			request, _, err := runs.ReadRequest(job.Spec.Template.Annotations, claimUID)
			if err != nil || job.Name != "delete-"+claimUID+"-3" || !request.Undo || request.ClusterUID != clusterID || request.ListedVolume != "v1" {
				l.t.Errorf("the Job is %+v, its request %+v, %v", job.ObjectMeta, request, err)
			}
			gated(job)
		}
		said, err := l.fixing(left(func(*audit.Volume) {}))
		if err != nil || !strings.Contains(said, "volume v1 of the class gold, of the claim app/data, was deleted. one volume") {
			l.t.Errorf("said %q, %v", said, err)
		}
		if made := l.made(); len(made) != 2 || made[0].Name != earlier.Name {
			l.t.Errorf("%d Jobs are left", len(made))
		}
	}, earlier, others)
}

// What may stand for the volume appears after the audit has looked, before the pod is there or
// while it waits for its image.
func TestADeleteDoesNotStartOnceSomethingStandsForItsVolume(t *testing.T) {
	t.Parallel()
	mine := map[string]string{config.LabelManagedBy: config.ManagedBy}
	for name, appears := range map[string]runtime.Object{
		"its own PV": &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + claimUID, Annotations: map[string]string{contract.AnnClaimUID: claimUID}}},
		"a PV by hand with the volume": &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/volume-1"}},
		}},
		"a PV by hand for the claim's name": &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "data"},
		}},
		"the claim": &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "other", UID: claimUID}},
		"a Job of the dispatcher": &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Namespace: "flex-provisioner", Name: "provision-" + claimUID + "-1", Labels: mine, Annotations: map[string]string{jobs.AnnUIDs: claimUID},
		}},
		"a pod of the dispatcher": &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "flex-provisioner", Name: "provision-" + claimUID + "-1-x", Labels: map[string]string{config.LabelManagedBy: config.ManagedBy, contract.LabelClaimUID: claimUID},
		}, Spec: corev1.PodSpec{NodeName: "node-1"}},
	} {
		volume := left(func(v *audit.Volume) { v.Volume = "volume-1" })
		t.Run(name+", before its pod", func(t *testing.T) {
			inLab(t, nil, func(l *lab) {
				l.started = func(job *batchv1.Job) {
					l.add(appears)
					l.pod(job, func(*corev1.Pod) {})
				}
				l.ungated = func(*corev1.Pod) { l.t.Error("it was started") }
				if said, err := l.fixing(volume); err == nil || !strings.Contains(said, "stands for something by now") {
					l.t.Errorf("said %q, %v", said, err)
				}
				l.mustLeaveNoJobOfAnAudit()
			})
		})
		t.Run(name+", before its container", func(t *testing.T) {
			inLab(t, nil, func(l *lab) {
				l.started = func(job *batchv1.Job) { l.pod(job, func(*corev1.Pod) {}) }
				l.ungated = func(*corev1.Pod) { time.AfterFunc(5*time.Second, func() { l.add(appears) }) }
				begin := time.Now()
				if said, err := l.fixing(volume); err == nil || !strings.Contains(said, "stands for something by now") || time.Since(begin) > 20*time.Second {
					l.t.Errorf("said %q, %v after %s", said, err, time.Since(begin))
				}
				l.mustLeaveNoJobOfAnAudit()
			})
		})
	}
}

// add lets an object appear.
func (l *lab) add(obj runtime.Object) {
	if err := l.client.Tracker().Add(obj.DeepCopyObject()); err != nil {
		l.t.Error(err)
	}
}

// mustLeaveNoJobOfAnAudit checks that no Job of an audit is left.
func (l *lab) mustLeaveNoJobOfAnAudit() {
	l.t.Helper()
	for _, job := range l.made() {
		if job.Labels[config.LabelManagedBy] != config.ManagedBy {
			l.t.Errorf("the Job %s is left", job.Name)
		}
	}
}

// Another audit is at work, or was killed: its Job has the name that the next one would have, and
// keeps it until its pod no longer exists.
func TestOfTwoThatDeleteAVolumeOneHasTheJob(t *testing.T) {
	other := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "delete-" + claimUID + "-1"}}
	inLab(t, nil, func(l *lab) {
		if said, err := l.fixing(left(func(*audit.Volume) {})); err == nil || !strings.Contains(said, "exists already") {
			l.t.Errorf("said %q, %v", said, err)
		}
	}, other)
}

func TestAFixThatIsInterruptedCanBeRunAgain(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		runsOn(l)
		ctx, stop := context.WithTimeout(l.t.Context(), 10*time.Second)
		defer stop()
		if err := l.Fix(ctx, left(func(*audit.Volume) {}), nil, func(string, ...any) {}); err == nil {
			l.t.Error("it ended without an error")
		}
		l.mustLeaveNoJob()
		l.ends(0, "", "")
		if _, err := l.fixing(left(func(*audit.Volume) {})); err != nil {
			l.t.Error(err)
		}
	})
}

func TestAVolumeIsNotDeletedByAnAuditUnlessItIsForCertainThisClustersAndStandsForNothing(t *testing.T) {
	t.Parallel()
	kept := class("gold")
	kept.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "data", UID: claimUID}}
	byHand := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/pvc-u-of-app"}},
	}}
	for name, test := range map[string]struct {
		keys   map[string]string
		change func(*audit.Volume)
		more   []runtime.Object
		want   string
	}{
		"it has no mark":                       {nil, func(v *audit.Volume) { v.ClusterUID = "" }, nil, "lacks this cluster's UID"},
		"it is another cluster's":              {nil, func(v *audit.Volume) { v.ClusterUID = "c-2" }, nil, "lacks this cluster's UID"},
		"its claim is not named":               {nil, func(v *audit.Volume) { v.Name = "" }, nil, "does not name its claim"},
		"the UID of its claim is none":         {nil, func(v *audit.Volume) { v.UID = "u" }, nil, "gives u as the UID of its claim, which is no UID"},
		"it is of no claim":                    {nil, func(v *audit.Volume) { v.UID = "" }, nil, `gives "" as the UID of its claim`},
		"its class is not named":               {nil, func(v *audit.Volume) { v.Class = "" }, nil, "does not name its storage class"},
		"its class does not exist":             {nil, func(v *audit.Volume) { v.Class = "silver" }, nil, "silver"},
		"its image does not delete":            {map[string]string{"verbs": "provision,list"}, func(*audit.Volume) {}, nil, "delete"},
		"its claim exists by now":              {nil, func(*audit.Volume) {}, []runtime.Object{claim}, "stands for something by now"},
		"its PV was restored meanwhile":        {nil, func(*audit.Volume) {}, []runtime.Object{ours()}, "stands for something by now"},
		"a PV by hand stands for it meanwhile": {nil, func(v *audit.Volume) { v.Volume = "pvc-u-of-app" }, []runtime.Object{byHand}, "stands for something by now"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, test.keys, func(l *lab) {
				said, err := l.fixing(left(test.change))
				if err == nil || !strings.Contains(said, test.want) {
					l.t.Errorf("said %q, %v", said, err)
				}
				l.mustLeaveNoJob()
			}, test.more...)
		})
	}
	t.Run("its class retains volumes", func(t *testing.T) {
		inLab(t, nil, func(l *lab) {
			if err := l.client.Tracker().Update(storagev1.SchemeGroupVersion.WithResource("storageclasses"), kept, ""); err != nil {
				l.t.Fatal(err)
			}
			if said, err := l.fixing(left(func(*audit.Volume) {})); err == nil || !strings.Contains(said, "reclaimPolicy Retain") {
				l.t.Errorf("said %q, %v", said, err)
			}
			l.mustLeaveNoJob()
		})
	})
}

// A storage names the claim of its volume as it likes, too: in no selector, and in no line of its
// own.
func TestAUIDOfAHostileListAddsNothingToWhatAFixSays(t *testing.T) {
	t.Parallel()
	for _, uid := range []string{"u\nvolume v9 of the class gold was deleted.", "\x1b[31m\a", "u,x!=y", strings.ToUpper(claimUID), claimUID + "\n"} {
		t.Run(uid, func(t *testing.T) {
			inLab(t, nil, func(l *lab) {
				l.client.PrependReactor("list", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
					if selector := action.(clienttesting.ListAction).GetListRestrictions().Labels.String(); strings.Contains(selector, uid) {
						l.t.Errorf("Jobs are listed by %q", selector)
					}
					return false, nil, nil
				})
				said, err := l.fixing(left(func(v *audit.Volume) { v.UID = uid }))
				if err == nil || !strings.Contains(said, "no UID of Kubernetes") || strings.ContainsFunc(strings.TrimSuffix(said, "\n")+err.Error(), unicode.IsControl) {
					l.t.Errorf("said %q, %v", said, err)
				}
				l.mustLeaveNoJob()
			})
		})
	}
}

func TestOnlyTheVolumesThatAreNamedAreDeleted(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		l.ends(0, "", "")
		var names []string
		gated := l.started
		l.started = func(job *batchv1.Job) {
			names = append(names, job.Name)
			gated(job)
		}
		look := left(func(*audit.Volume) {})
		second := left(func(v *audit.Volume) { v.UID, v.Volume = otherUID, "v2" })
		look.Found = append(look.Found, second.Found...)
		look.Found = append(look.Found, audit.Finding{Kind: audit.VolumeTwice, UID: "x", Class: "gold", Volume: audit.Volume{UID: "x", Volume: "v3", ClusterUID: clusterID}})
		if said, err := l.fixing(look, "v2"); err != nil || strings.Contains(said, "v1") || !strings.Contains(said, "v2") {
			l.t.Errorf("said %q, %v", said, err)
		}
		for _, other := range []string{"v3", "v4"} {
			if _, err := l.fixing(look, other); err == nil || !strings.Contains(err.Error(), other+" is not an orphaned volume") {
				l.t.Errorf("%s: %v", other, err)
			}
		}
		if !slices.Equal(names, []string{"delete-" + otherUID + "-1"}) {
			l.t.Errorf("the Jobs were %v", names)
		}
	})
}

func TestAnAuditSaysWhyAVolumeWasNotDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  func(*lab)
		want string
	}{
		"the image fails":             {func(l *lab) { l.ends(75, "the storage is busy", "") }, "the storage is busy"},
		"its Job is deleted":          {isDeleted, "was deleted"},
		"its config changes":          {isChanged, "its config has changed"},
		"another controller holds it": {isHeld, "scheduling gates of other controllers"},
		"its image cannot be pulled":  {waits, "no such image"},
		"it takes longer than it may": {runsOn, "--timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, nil, func(l *lab) {
				test.set(l)
				begin := time.Now()
				if said, err := l.fixing(left(func(*audit.Volume) {})); err == nil || !strings.Contains(said, test.want) {
					l.t.Errorf("said %q, %v", said, err)
				}
				if took := time.Since(begin); took > 2*time.Minute {
					l.t.Errorf("it took %s", took)
				}
			})
		})
	}
}
