package run_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Both classes list all volumes of a storage. One that a class with the policy Retain keeps is not
// deleted by way of the other.
func TestAVolumeIsDeletedByItsOwnClassOnly(t *testing.T) {
	silver := class("silver")
	silver.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	cm := configOf("silver", map[string]string{"image": "localhost/silver:v1", "service-account-name": "silver", "verbs": "provision,delete,list"})
	inLab(t, nil, func(l *lab) {
		kept := audit.Volume{UID: claimUID, Volume: "v1", Namespace: "app", Name: "data", Class: "silver", ClusterUID: clusterID}
		s := audit.State{ClusterUID: clusterID, Volumes: map[string][]audit.Volume{"gold": {kept}, "silver": {kept}}}
		said, err := l.fixing(run.Look{State: s, Found: audit.Check(s)})
		if err == nil || !strings.Contains(said, "of the class silver stays: its class has the reclaimPolicy Retain") {
			l.t.Errorf("said %q, %v", said, err)
		}
		l.mustLeaveNoJob()
	}, silver, cm, account("silver"))
}

// The storage of silver names a volume of gold, for a claim that does not exist: nothing is deleted
// by that.
func TestAListDeletesNoVolumeOfAnotherStorage(t *testing.T) {
	cm := configOf("silver", map[string]string{"image": "localhost/silver:v1", "service-account-name": "silver", "verbs": "provision,delete,list"})
	inLab(t, nil, func(l *lab) {
		l.started = func(job *batchv1.Job) { l.t.Errorf("the Job %s was created", job.Name) }
		forged := audit.Volume{UID: claimUID, Volume: "v1", Namespace: "app", Name: "data", Class: "gold", ClusterUID: clusterID}
		s := audit.State{ClusterUID: clusterID, Volumes: map[string][]audit.Volume{"silver": {forged}, "gold": {}}}
		for _, only := range [][]string{nil, {"v1"}} {
			said, err := l.fixing(run.Look{State: s, Found: audit.Check(s)}, only...)
			if err == nil || !strings.Contains(said, "the storage of the class silver lists it, but it belongs to another class. Remedy: list the storage of that class, with --storage=gold") {
				l.t.Errorf("said %q, %v", said, err)
			}
		}
		own := forged
		own.UID = otherUID
		s.Volumes["gold"] = []audit.Volume{own}
		if _, err := l.fixing(run.Look{State: s, Found: audit.Check(s)}, "v1"); err == nil || !strings.Contains(err.Error(), "2 volumes have the name v1") {
			l.t.Errorf("of two volumes of a name: %v", err)
		}
	}, class("silver"), cm, account("silver"))
}

// The dispatcher of another provisioner may work for the same claim, on the same storage.
func TestARunOfAnotherProvisionerStandsForItsVolume(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		classes, err := l.Classes(l.t.Context(), "gold")
		if err != nil {
			l.t.Fatal(err)
		}
		v := audit.Volume{UID: claimUID, Volume: "v1", Namespace: "app", Name: "data", Class: "gold", ClusterUID: clusterID}
		theirs := classes[0].Config
		theirs.Source.Namespace = "theirs"
		job, err := jobs.Build(jobs.Plan{
			Config: theirs, Provisioner: "other.example.com", Verb: contract.Delete, Request: contract.Request{UID: v.UID, PVName: contract.PVName(v.UID)}, Number: 1,
			PV: &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{contract.AnnProvisionedBy: "other.example.com"}}},
		})
		if err != nil {
			l.t.Fatal(err)
		}
		if err := l.client.Tracker().Create(batchv1.SchemeGroupVersion.WithResource("jobs"), job, job.Namespace); err != nil {
			l.t.Fatal(err)
		}
		l.ConfigNamespaces = []string{"theirs"}
		s, err := l.ReadState(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		s.Volumes = map[string][]audit.Volume{"gold": {v}}
		for _, f := range audit.Check(s) {
			l.t.Errorf("%s: %s: %s", f.Kind, f.Object, f.Why)
		}
	})
}

// Of a PV whose volume source is too large to be kept nothing says for which volume it stands.
func TestNoVolumeIsDeletedBesideAPVThatIsNotCompared(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		v := audit.Volume{UID: claimUID, Volume: "volume-0123456789", Namespace: "app", Name: "data", Class: "gold", ClusterUID: clusterID}
		s := audit.State{ClusterUID: clusterID, Volumes: map[string][]audit.Volume{"gold": {v}}}
		l.add(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "example.com/x", Options: map[string]string{"volume": v.Volume, "more": strings.Repeat("x", contract.MaxFiles)}},
		}}})
		said, err := l.fixing(run.Look{State: s, Found: audit.Check(s)})
		if err == nil || !strings.Contains(said, "the PersistentVolume by-hand may stand for it: its volume source is larger than") {
			l.t.Errorf("said %q, %v", said, err)
		}
		l.mustLeaveNoJob()
	})
}
