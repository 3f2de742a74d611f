package admin_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/audit"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fixture"
)

// left is a look that has found a volume, of this cluster if nothing else is said.
func left(change func(*audit.Volume)) admin.Look {
	v := audit.Volume{UID: "u", Volume: "v1", Size: 1 << 30, Namespace: "app", Name: "data", Class: "gold", ClusterUID: clusterID}
	change(&v)
	return admin.Look{State: audit.State{ClusterUID: clusterID}, Found: []audit.Finding{{Kind: audit.VolumeLeft, UID: v.UID, Class: cmp.Or(v.Class, "gold"), Volume: v}}}
}

// records lets the dispatcher record an outcome on each Job.
func (l *lab) records(out runs.Outcome) {
	l.started = func(job *batchv1.Job) {
		fixture.Record(job, jobs.UIDs(job)[0], func(r *jobs.Record) { r.Recorded = &out })
		if err := l.client.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, job.Namespace); err != nil {
			l.t.Error(err)
		}
	}
}

// fixing deletes what a look has found, and returns what is said.
func (l *lab) fixing(look admin.Look, only ...string) (string, error) {
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

func TestAVolumeThatStandsForNothingIsDeletedByAJobOnRecord(t *testing.T) {
	earlier := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "delete-u-2", Labels: map[string]string{
		jobs.LabelMember + "u": "", jobs.LabelVerb: "delete",
	}, Annotations: map[string]string{jobs.AnnUIDs: "u"}}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}}
	inLab(t, nil, func(l *lab) {
		l.records(runs.Outcome{Verdict: contract.Done, Message: "one volume"})
		said, err := l.fixing(left(func(*audit.Volume) {}))
		if err != nil || !strings.Contains(said, "volume v1 of the class gold, of the claim app/data, was deleted. one volume") {
			l.t.Errorf("said %q, %v", said, err)
		}
		made := l.made()
		job := made[len(made)-1]
		request, _, err := runs.Recorded(job.Spec.Template.Annotations, "u")
		if err != nil || job.Name != "delete-u-3" || !runs.RecordOf(&job, "u").IsFix() || !runs.RecordOf(&job, "u").Held || !request.Undo || request.ClusterUID != clusterID {
			l.t.Errorf("the Job is %+v, its request %+v, %v", job.ObjectMeta, request, err)
		}
	}, earlier)
}

func TestAVolumeIsNotDeletedByAnAuditUnlessItIsForCertainThisClustersAndStandsForNothing(t *testing.T) {
	t.Parallel()
	kept := class("gold")
	kept.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "data", UID: "u"}}
	byHand := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/pvc-u-of-app"}},
	}}
	for name, test := range map[string]struct {
		keys   map[string]string
		change func(*audit.Volume)
		more   []runtime.Object
		want   string
	}{
		"it has no mark":                       {nil, func(v *audit.Volume) { v.ClusterUID = "" }, nil, "does not bear this cluster's UID"},
		"it is another cluster's":              {nil, func(v *audit.Volume) { v.ClusterUID = "c-2" }, nil, "does not bear this cluster's UID"},
		"its claim is not named":               {nil, func(v *audit.Volume) { v.Name = "" }, nil, "does not say of which claim"},
		"its class is not named":               {nil, func(v *audit.Volume) { v.Class = "" }, nil, "does not say of which storage class"},
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

func TestOnlyTheVolumesThatAreNamedAreDeleted(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		l.records(runs.Outcome{Verdict: contract.Done})
		look := left(func(*audit.Volume) {})
		second := left(func(v *audit.Volume) { v.UID, v.Volume = "w", "v2" })
		look.Found = append(look.Found, second.Found...)
		look.Found = append(look.Found, audit.Finding{Kind: audit.VolumeTwice, UID: "x", Class: "gold", Volume: audit.Volume{UID: "x", Volume: "v3", ClusterUID: clusterID}})
		if said, err := l.fixing(look, "v2"); err != nil || strings.Contains(said, "v1") || !strings.Contains(said, "v2") {
			l.t.Errorf("said %q, %v", said, err)
		}
		for _, other := range []string{"v3", "v4"} {
			if _, err := l.fixing(look, other); err == nil || !strings.Contains(err.Error(), other+" is not one that stands for nothing") {
				l.t.Errorf("%s: %v", other, err)
			}
		}
		if made := l.made(); len(made) != 1 || made[0].Name != "delete-w-1" {
			l.t.Errorf("%d Jobs", len(made))
		}
	})
}

func TestAnAuditSaysWhyAVolumeWasNotDeleted(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		set  func(*lab)
		want string
	}{
		"the image fails":                    {func(l *lab) { l.records(runs.Outcome{Verdict: contract.TryAgain, Message: "the storage is busy"}) }, "the storage is busy"},
		"the dispatcher cancels it":          {func(l *lab) { l.cancels("the claim of the volume exists") }, "the claim of the volume exists"},
		"no dispatcher confirms it in time":  {func(l *lab) { l.started = func(job *batchv1.Job) { l.pod(job, func(*corev1.Pod) {}) } }, "kubectl get lease"},
		"the dispatcher has cancelled it":    {func(l *lab) { l.records(runs.Outcome{Verdict: contract.NotStarted, Reason: runs.Cancelled}) }, "no event says why"},
		"its container was never made, late": {func(l *lab) { l.records(runs.Outcome{Verdict: contract.NotStarted, Message: "no image"}) }, "no image"},
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

// Both classes list all volumes of a storage. One that a class with the policy Retain keeps is not deleted by way of the other.
func TestAVolumeIsDeletedByItsOwnClassOnly(t *testing.T) {
	silver := class("silver")
	silver.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	cm := configOf("silver", map[string]string{"image": "localhost/silver:v1", "service-account-name": "silver", "verbs": "provision,delete,list"})
	inLab(t, nil, func(l *lab) {
		kept := audit.Volume{UID: "u", Volume: "v1", Namespace: "app", Name: "data", Class: "silver", ClusterUID: clusterID}
		s := audit.State{ClusterUID: clusterID, Volumes: map[string][]audit.Volume{"gold": {kept}, "silver": {kept}}}
		said, err := l.fixing(admin.Look{State: s, Found: audit.Check(s)})
		if err == nil || !strings.Contains(said, "of the class silver stays: its class has the reclaimPolicy Retain") {
			l.t.Errorf("said %q, %v", said, err)
		}
		l.mustLeaveNoJob()
	}, silver, cm)
}

// The dispatcher of another provisioner may work for the same claim, on the same storage.
func TestARunOfAnotherProvisionerStandsForItsVolume(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		classes, err := l.Classes(l.t.Context(), "gold")
		if err != nil {
			l.t.Fatal(err)
		}
		v := audit.Volume{UID: "u", Volume: "v1", Namespace: "app", Name: "data", Class: "gold", ClusterUID: clusterID}
		theirs := classes[0].Config
		theirs.Source.Namespace = "theirs"
		job, err := jobs.Fix(theirs, contract.Listed(v), 1, jobs.Cluster{UID: clusterID}, "other.example.com")
		if err != nil {
			l.t.Fatal(err)
		}
		if err := l.client.Tracker().Create(batchv1.SchemeGroupVersion.WithResource("jobs"), job, job.Namespace); err != nil {
			l.t.Fatal(err)
		}
		s, err := admin.ReadState(l.t.Context(), l.client, l.Objects, contract.ProvisionerName, l.Clock.Now())
		if err != nil {
			l.t.Fatal(err)
		}
		s.ClusterUID, s.Volumes = clusterID, map[string][]audit.Volume{"gold": {v}}
		for _, f := range audit.Check(s) {
			l.t.Errorf("%s: %s: %s", f.Kind, f.Object, f.Why)
		}
	})
}
