// Package invariants checks what was written in a cluster in memory, whatever a test is about.
// Start reading at [Check].
package invariants

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/logsink"
	"github.com/flex-provisioner/flex-provisioner/test/policies"
)

// Check replays all that was written and checks at every step what must hold whatever a test is
// about.
func Check(c *fakecluster.Cluster) {
	c.T.Helper()
	checkSizes(c)
	checkPanics(c)
	r := &replay{
		c: c, now: map[key]fakecluster.Object{},
		jobs: map[string][]key{}, pods: map[key][]key{}, claims: map[string]key{},
		retained: map[string]time.Time{}, used: map[string]bool{}, served: map[[2]string]bool{},
	}
	for _, change := range c.Server.History() {
		if change.By == fakecluster.DispatcherName {
			r.checkAdmitted(change)
			r.checkWrite(change)
		}
		r.follow(change)
	}
}

type key = fakecluster.Key

// replay is the state of the cluster at one point of its history.
type replay struct {
	c      *fakecluster.Cluster
	now    map[key]fakecluster.Object
	jobs   map[string][]key // of a claim, by its UID
	pods   map[key][]key    // of a Job
	claims map[string]key   // by UID
	// retained says since when a PV has the policy Retain, or had it when it was deleted, by name.
	retained map[string]time.Time
	// used are the PVs that were bound: only in these there can be data.
	used map[string]bool
	// served are the UIDs of claims with the config revisions of their provisions, and with those
	// that an administrator has named on their PVs.
	served map[[2]string]bool
}

func (r *replay) follow(change fakecluster.Change) {
	r.now[change.Key] = change.Now
	r.followPolicy(change)
	switch obj := change.Now.(type) {
	case *batchv1.Job:
		if change.Verb == "create" {
			for _, uid := range fakecluster.UIDsOf(obj) {
				r.jobs[uid] = append(r.jobs[uid], change.Key)
				r.followRevision(uid, obj)
			}
		}
	case *corev1.Pod:
		if change.Verb == "create" {
			at := jobOf(obj)
			r.pods[at] = append(r.pods[at], change.Key)
		}
	case *corev1.PersistentVolume:
		if change.By == fakecluster.Admin {
			r.served[[2]string{strings.TrimPrefix(obj.Name, contract.PVName("")), config.NameOfRevision(obj.Annotations[contract.AnnRevision])}] = true
		}
	case *corev1.PersistentVolumeClaim:
		r.claims[string(obj.UID)] = change.Key
	}
}

// followRevision checks that a claim's volume is deleted and grown under a config under which the
// claim was served, in whatever revision, or which an administrator has named on its PV. What anybody
// else writes there does not count.
func (r *replay) followRevision(uid string, job *batchv1.Job) {
	of := [2]string{uid, config.NameOfRevision(job.Annotations[contract.AnnRevision])}
	switch verb := fakecluster.VerbOf(&job.Spec.Template.Spec); {
	case verb == string(contract.List): // serves no claim
	case verb == string(contract.Provision):
		r.served[of] = true
	case !isOfAudit(job) && !r.served[of]:
		r.c.T.Errorf("the Job %s is launched under the config revision %s, and the claim was not served under it", job.Name, of[1])
	}
}

func (r *replay) checkWrite(change fakecluster.Change) {
	switch obj := change.Now.(type) {
	case *corev1.Pod:
		if before, existed := r.now[change.Key].(*corev1.Pod); existed && fakecluster.IsGated(before) && !fakecluster.IsGated(obj) {
			r.checkOneRun(change.Key, obj)
			r.checkWanted(obj)
			r.checkRetained(obj)
		}
	case *corev1.PersistentVolumeClaim:
		r.checkFree(obj)
		r.checkAsked(change)
	}
}

// checkAdmitted checks that the policies that are shipped for the dispatcher admit a write of it.
func (r *replay) checkAdmitted(change fakecluster.Change) {
	now := change.Now
	if now == nil {
		now = change.Old // without its last finalizer the object no longer exists
	}
	if why := policies.Refusal(change.Verb, r.now[change.Key], now); why != "" {
		r.c.T.Errorf("the dispatcher's policies refuse %s", why)
	}
}

// checkOneRun checks that no two pods of a UID may run at a time, whatever their verbs. A pod that
// was deleted by force is judged by the kubelet, see checkAlone.
func (r *replay) checkOneRun(own key, starts *corev1.Pod) {
	for _, uid := range r.c.MembersOf(starts) {
		for _, job := range r.jobs[uid] {
			for _, at := range r.pods[job] {
				// a Job of the same name may have had other members
				if pod, exists := r.now[at].(*corev1.Pod); exists && at != own && mayRun(pod) && slices.Contains(r.c.MembersOf(pod), uid) {
					r.c.T.Errorf("%s starts while %s may run", starts.Name, pod.Name)
				}
			}
		}
	}
}

// followPolicy notes the policy of a PV. Its deletion changes nothing.
func (r *replay) followPolicy(change fakecluster.Change) {
	pv, isPV := change.Now.(*corev1.PersistentVolume)
	if !isPV {
		return
	}
	r.used[pv.Name] = r.used[pv.Name] || pv.Status.Phase == corev1.VolumeBound
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		delete(r.retained, pv.Name)
	} else if _, known := r.retained[pv.Name]; !known {
		r.retained[pv.Name] = change.At
	}
}

// checkRetained checks that no delete starts for a volume whose PV has the policy Retain, or had it
// to its end, from before the delete's Job was created.
func (r *replay) checkRetained(pod *corev1.Pod) {
	job, exists := r.now[jobOf(pod)].(*batchv1.Job)
	if !exists || fakecluster.VerbOf(&pod.Spec) != string(contract.Delete) {
		return
	}
	for _, uid := range fakecluster.UIDsOf(job) {
		if since, retained := r.retained[contract.PVName(uid)]; retained && r.used[contract.PVName(uid)] && since.Before(job.CreationTimestamp.Time) {
			r.c.T.Errorf("%s starts although the PersistentVolume %s has the policy Retain since %s", pod.Name, contract.PVName(uid), since)
		}
	}
}

// jobOf returns the Job of a pod.
func jobOf(pod *corev1.Pod) key {
	return key{Resource: "jobs", Namespace: pod.Namespace, Name: pod.Labels[batchv1.JobNameLabel]}
}

// isOfAudit reports whether an administrator's audit has created a Job, as its label says.
func isOfAudit(job *batchv1.Job) bool {
	return job.Labels["app.kubernetes.io/managed-by"] == "flex-dispatcher-audit"
}

func mayRun(pod *corev1.Pod) bool {
	forced := pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	return !fakecluster.HasEnded(pod) && !fakecluster.IsGated(pod) && !forced && (pod.DeletionTimestamp == nil || pod.Spec.NodeName != "")
}

// checkWanted checks that no provision starts for a claim that is terminating or no longer exists.
// With a watch that is behind the dispatcher cannot know.
func (r *replay) checkWanted(pod *corev1.Pod) {
	if fakecluster.VerbOf(&pod.Spec) != string(contract.Provision) || r.c.Server.WasDelayed("persistentvolumeclaims") {
		return
	}
	wanted := false
	for _, uid := range r.c.MembersOf(pod) {
		claim, exists := r.now[r.claims[uid]].(*corev1.PersistentVolumeClaim)
		wanted = wanted || exists && string(claim.UID) == uid && claim.DeletionTimestamp == nil
	}
	if !wanted {
		r.c.T.Errorf("%s starts for claims that are terminating or no longer exist", pod.Name)
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

// checkAsked checks that no dispatcher writes on a claim that is not bound before the PV controller
// has asked for its volume: that controller may be about to write that, and the refusal of its
// write is reported to the claim's user.
func (r *replay) checkAsked(change fakecluster.Change) {
	claim, existed := r.now[change.Key].(*corev1.PersistentVolumeClaim)
	if existed && claim.Spec.VolumeName == "" && claim.Annotations[fakecluster.AnnStorageProvisioner] == "" && claim.Annotations[fakecluster.AnnBetaStorageProvisioner] == "" {
		r.c.T.Errorf("the dispatcher writes on the claim %s before the PV controller has asked for its volume", claim.Name)
	}
}

// checkSizes checks that no capacity ever goes down, neither a PV's nor a claim's, and that only
// its user changes what a claim asks for.
func checkSizes(c *fakecluster.Cluster) {
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
			if now := asked[obj.UID]; known && change.By != fakecluster.User && now.Cmp(was) != 0 {
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

// checkPanics checks that no dispatcher has panicked. What a panic concerns is tried again, so that
// nothing else may show it.
func checkPanics(c *fakecluster.Cluster) {
	if n := logsink.Of(c.Log).Count("Recovered from a panic"); n > 0 && !c.Panics {
		c.T.Errorf("dispatchers have panicked %d times", n)
	}
}
