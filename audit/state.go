package audit

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// State is what exists at one time.
type State struct {
	Now    time.Time
	Claims []*corev1.PersistentVolumeClaim
	// ClusterUID is the UID of the namespace kube-system, empty if it is not known.
	ClusterUID string
	// Classes are the names of all storage classes.
	Classes []string
	// PVs are those of one provisioner, Others all other PVs. Jobs and Pods are its dispatcher's, in
	// namespaces that are or were served.
	PVs, Others []*corev1.PersistentVolume

	Jobs []*batchv1.Job
	// OtherJobs are those of the dispatchers of other provisioners, which may work on the same
	// storage. Of one in a namespace that is not served only its name is known.
	OtherJobs []*batchv1.Job
	Pods      []*corev1.Pod
	// UnservedJobs and UnservedPods have the dispatcher's label in other namespaces, where anyone may
	// have written it: nothing else is read in them.
	UnservedJobs []*batchv1.Job
	UnservedPods []*corev1.Pod
	// Secrets are those with the label of a claim's UID. What is in them is not needed.
	Secrets []metav1.ObjectMeta
	// Volumes are those of the storages that were listed, by class.
	Volumes map[string][]Volume
	// OnNodes are those of the classes whose storage is on nodes, by class and by the name of the node
	// that has listed them. It lacks a node that was not listed. Nodes are all nodes, if there is such a
	// class.
	OnNodes map[string]map[string][]Volume
	Nodes   []*corev1.Node
}

// Volume is a volume as its storage lists it.
type Volume contract.Listed

// Bears reports whether a volume says that it is this cluster's.
func (s *State) Bears(v Volume) bool { return s.ClusterUID != "" && v.ClusterUID == s.ClusterUID }

// isForeign reports whether a volume says that it is another cluster's.
func (s *State) isForeign(v Volume) bool {
	return s.ClusterUID != "" && v.ClusterUID != "" && v.ClusterUID != s.ClusterUID
}

// Grace is how long something may take to come to its end before it is a finding: the dispatcher
// and Kubernetes' own controllers work on it.
const Grace = 15 * time.Minute

// index is what the rules look up.
type index struct {
	State
	places

	claims  map[string]*corev1.PersistentVolumeClaim // by UID
	pvs     map[string]*corev1.PersistentVolume      // by name
	ofUID   map[string]*corev1.PersistentVolume
	holders holders         // all PVs
	atWork  map[string]bool // UIDs with a run that has not ended or a record
	jobs    map[types.NamespacedName]*batchv1.Job
	secrets map[types.NamespacedName]bool
}

func newIndex(s State) *index {
	x := &index{
		State: s, places: placesOf(s.Nodes), claims: map[string]*corev1.PersistentVolumeClaim{},
		pvs: map[string]*corev1.PersistentVolume{}, ofUID: map[string]*corev1.PersistentVolume{}, atWork: map[string]bool{},
		jobs: map[types.NamespacedName]*batchv1.Job{}, secrets: map[types.NamespacedName]bool{},
	}
	for _, claim := range s.Claims {
		x.claims[string(claim.UID)] = claim
	}
	for _, pv := range s.PVs {
		x.pvs[pv.Name] = pv
		if uid := pv.Annotations[contract.AnnClaimUID]; uid != "" && x.ofUID[uid] == nil {
			x.ofUID[uid] = pv
		}
	}
	x.holders = holdersOf(slices.Concat(s.PVs, s.Others))
	x.addJobs()
	for i := range s.Secrets {
		x.secrets[types.NamespacedName{Namespace: s.Secrets[i].Namespace, Name: s.Secrets[i].Name}] = true
	}
	return x
}

func (x *index) addJobs() {
	for _, job := range x.Jobs {
		x.jobs[types.NamespacedName{Namespace: job.Namespace, Name: job.Name}] = job
	}
	for _, job := range slices.Concat(x.Jobs, x.OtherJobs) {
		for _, uid := range jobs.UIDs(job) {
			_, over := x.overSince(job)
			x.atWork[uid] = x.atWork[uid] || runs.RecordOf(job, uid).Held || !over
		}
	}
	for _, pod := range x.Pods {
		mayRun, _ := runs.MayRun(pod, x.Now)
		for _, uid := range jobs.UIDsOfPod(pod) {
			x.atWork[uid] = x.atWork[uid] || mayRun && !runs.IsLeftGated(pod)
		}
	}
}

// overSince returns since when nothing more is to be expected of a Job, and false if something is.
// One that was deleted before it had finished gets no condition any more.
func (x *index) overSince(job *batchv1.Job) (metav1.Time, bool) {
	switch {
	case runs.IsFinished(job):
		return runs.FinishedAt(job), true
	case job.DeletionTimestamp != nil && x.age(*job.DeletionTimestamp) > Grace:
		return *job.DeletionTimestamp, true
	default:
		return metav1.Time{}, false
	}
}

// isWaitedFor reports whether a claim's UID is still being worked on, or may be.
func (x *index) isWaitedFor(uid string) bool { return x.claims[uid] != nil || x.atWork[uid] }

// isBound reports whether a claim is bound to a PV. Any claim may name the PV in spec.volumeName,
// so the PV's claimRef decides which one it is.
func (x *index) isBound(pv *corev1.PersistentVolume) bool {
	if pv.Spec.ClaimRef == nil {
		return false
	}
	claim := x.claims[string(pv.Spec.ClaimRef.UID)]
	return claim != nil && claim.Spec.VolumeName == pv.Name
}

// ageOf returns how old a volume is, zero if that is not known.
func (x *index) ageOf(v Volume) time.Duration {
	created, err := time.Parse(time.RFC3339, v.CreatedAt)
	if err != nil {
		return 0
	}
	return max(0, x.Now.Sub(created))
}

func (x *index) age(since metav1.Time) time.Duration { return x.Now.Sub(since.Time) }
