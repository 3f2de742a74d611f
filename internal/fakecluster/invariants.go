package fakecluster

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// CheckInvariants replays all that was written and checks at every step what must hold whatever a test is about.
func (c *Cluster) CheckInvariants() {
	c.T.Helper()
	c.checkSizes()
	r := &replay{c: c, jobs: map[string][]Key{}, now: map[Key]Object{}, pods: map[Key][]Key{}, claims: map[string]Key{}}
	for _, change := range c.Server.History() {
		if change.By == DispatcherName && change.Now != nil {
			r.checkWrite(change)
		}
		r.follow(change)
	}
}

// replay is the state of the cluster at one point of its history.
type replay struct {
	c      *Cluster
	now    map[Key]Object
	jobs   map[string][]Key // of a claim, by its UID
	pods   map[Key][]Key    // of a Job
	claims map[string]Key   // by UID
}

func (r *replay) follow(change Change) {
	r.now[change.Key] = change.Now
	switch obj := change.Now.(type) {
	case *batchv1.Job:
		if change.Verb == "create" {
			for _, uid := range uidsOf(obj) {
				r.jobs[uid] = append(r.jobs[uid], change.Key)
			}
		}
	case *corev1.Pod:
		if change.Verb == "create" {
			at := Key{"jobs", change.Namespace, obj.Labels[batchv1.JobNameLabel]}
			r.pods[at] = append(r.pods[at], change.Key)
		}
	case *corev1.PersistentVolumeClaim:
		r.claims[string(obj.UID)] = change.Key
	}
}

func (r *replay) checkWrite(change Change) {
	switch obj := change.Now.(type) {
	case *batchv1.Job:
		if change.Verb == "create" {
			r.checkOneRun(obj)
			r.checkWanted(obj)
		}
	case *corev1.PersistentVolumeClaim:
		r.checkFree(obj)
	}
}

func uidsOf(job *batchv1.Job) []string {
	in, err := readInput(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec)
	if err != nil {
		return nil // it is none of the dispatcher's
	}
	var uids []string
	for _, request := range in.requests {
		uids = append(uids, request.UID)
	}
	return uids
}

// checkOneRun checks that a UID has at most one unfinished Job, whatever the verb.
func (r *replay) checkOneRun(job *batchv1.Job) {
	for _, uid := range uidsOf(job) {
		for _, at := range r.jobs[uid] {
			if r.isUnfinished(at) {
				r.c.T.Errorf("%s is made while %s is unfinished", job.Name, at.Name)
			}
		}
	}
}

// isUnfinished reports whether a Job is neither Complete nor Failed, nor deleted with no pod that may still run.
func (r *replay) isUnfinished(at Key) bool {
	job, exists := r.now[at].(*batchv1.Job)
	if !exists || FinishedCondition(job) != nil {
		return false
	}
	return job.DeletionTimestamp == nil || slices.ContainsFunc(r.pods[at], func(at Key) bool {
		pod, exists := r.now[at].(*corev1.Pod)
		return exists && !hasEnded(pod)
	})
}

// checkWanted checks that no provision starts for a claim that is terminating or no longer exists.
func (r *replay) checkWanted(job *batchv1.Job) {
	if verbOf(&job.Spec.Template.Spec) != string(contract.Provision) {
		return
	}
	for _, uid := range uidsOf(job) {
		claim, exists := r.now[r.claims[uid]].(*corev1.PersistentVolumeClaim)
		if !exists || string(claim.UID) != uid || claim.DeletionTimestamp != nil {
			r.c.T.Errorf("%s is made for a claim that is terminating or has gone", job.Name)
		}
	}
}

// checkFree checks that a claim's own deletion is never blocked.
func (r *replay) checkFree(claim *corev1.PersistentVolumeClaim) {
	for _, f := range claim.Finalizers {
		if strings.HasPrefix(f, contract.Domain) {
			r.c.T.Errorf("the claim %s carries the finalizer %s", claim.Name, f)
		}
	}
}

// checkSizes checks that no capacity ever goes down, neither a PV's nor a claim's, and that only its user changes what
// a claim asks for.
func (c *Cluster) checkSizes() {
	c.T.Helper()
	sizes, asked := map[types.UID]resource.Quantity{}, map[types.UID]resource.Quantity{}
	for _, change := range c.Server.History() {
		var size resource.Quantity
		switch obj := change.Now.(type) {
		case *corev1.PersistentVolume:
			size = *obj.Spec.Capacity.Storage()
		case *corev1.PersistentVolumeClaim:
			size = *obj.Status.Capacity.Storage()
			was, known := asked[obj.UID]
			asked[obj.UID] = *obj.Spec.Resources.Requests.Storage()
			if now := asked[obj.UID]; known && change.By != User && now.Cmp(was) != 0 {
				c.T.Errorf("%s makes %s ask for %s", change.By, change.Name, now.String())
			}
		default:
			continue
		}
		if was := sizes[change.Now.GetUID()]; size.Cmp(was) < 0 {
			c.T.Errorf("%s shrinks %s from %s to %s", change.By, change.Name, was.String(), size.String())
		}
		sizes[change.Now.GetUID()] = size
	}
}
