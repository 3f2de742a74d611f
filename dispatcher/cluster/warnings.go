package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/answerlimit"
)

// warnings are the newest events about Jobs that do not start, by "namespace/name", as far as they
// were looked for. Events are not cached. A restart loses them, and each such Job is looked at
// again.
type warnings struct {
	byJob *cache.LRUExpireCache
	reads flowcontrol.PassiveRateLimiter
}

func newWarnings(reads flowcontrol.PassiveRateLimiter) warnings {
	return warnings{byJob: cache.NewLRUExpireCache(mostWarnings), reads: reads}
}

// An API server reads all events of a namespace to find those about one object. Two hundred Jobs
// that started slowly, as it was busy, made it five times as busy by that. What is in the way of
// one Job is in the way of others, so ten are looked up at once, and then one a second.
const (
	warningReads = 1 // a second
	warningBurst = 10
)

// mostWarnings is of how many Jobs the newest event is kept, and warningKept for how long.
const (
	mostWarnings = 1000
	warningKept  = time.Hour
)

// KeepWarning keeps the newest event about a Job that does not start, nil for none. What is in its
// way is in the way of others.
func (c *Caches) KeepWarning(job *batchv1.Job, w *runs.Warning) {
	key := job.Namespace + "/" + job.Name
	if w == nil {
		c.warnings.byJob.Remove(key)
		return
	}
	c.warnings.byJob.Add(key, *w, warningKept)
}

// Whoever may create events in a namespace, as every kubelet may in all, writes any number about any
// pod, and the core API limits no message. One look at 455 events of 1.4 MB once ended the
// dispatcher (TestOnlyACauseIsLostByLargeEvents). The kubelet's own are of one or two KiB, and it
// writes few about one pod.
const (
	mostEvents     = 20
	mostEventBytes = 256 << 10
)

// WarningAbout returns the newest Warning event about a Job or its pod, by the UID of either, or
// nil. It asks the API server, since events are many and are not cached. Where it asks too often, or
// the events are too large, it returns what was kept for the Job: nothing but a cause is lost.
func (c *Caches) WarningAbout(ctx context.Context, job *batchv1.Job, uid types.UID) *runs.Warning {
	if !c.warnings.reads.TryAccept() {
		return c.keptWarning(job)
	}
	found, err := NewestWarning(ctx, c.client, job.Namespace, uid)
	if err != nil {
		klog.FromContext(ctx).Info("Cannot read the events about a Job that does not start", "job", klog.KObj(job), "err", err)
		return c.keptWarning(job)
	}
	return found
}

// NewestWarning returns the newest of the first Warning events about an object, or nil. It is an
// error if they are larger than any that Kubernetes writes, and the client was made by a config that
// answerlimit.Wrap has changed.
func NewestWarning(ctx context.Context, client kubernetes.Interface, namespace string, uid types.UID) (*runs.Warning, error) {
	list, err := client.CoreV1().Events(namespace).List(answerlimit.With(ctx, mostEventBytes), metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning}.String(), Limit: mostEvents,
	})
	if err != nil {
		return nil, fmt.Errorf("list the events about %s in %s: %w", uid, namespace, err)
	}
	return runs.NewestWarning(list.Items), nil
}

// keptWarning returns the newest event about a Job that was found before, or nil.
func (c *Caches) keptWarning(job *batchv1.Job) *runs.Warning {
	last, known := c.warnings.byJob.Get(job.Namespace + "/" + job.Name)
	if !known {
		return nil
	}
	return new(last.(runs.Warning))
}

// StuckJobs are Jobs that cannot start, the oldest first, and why.
type StuckJobs []StuckJob

// StuckJob is one of them.
type StuckJob struct {
	*batchv1.Job
	*runs.Stuck
}

// StuckLike returns the Jobs of a config revision, "namespace/name", that go to the same nodes and
// cannot start.
func (c *Caches) StuckLike(revision, nodes string, now time.Time) StuckJobs {
	var out StuckJobs
	for _, job := range c.StartingLike(revision, nodes) {
		if stuck := c.StuckOf(job, now); stuck.Cause() != "" && job.DeletionTimestamp == nil {
			out = append(out, StuckJob{job, stuck})
		}
	}
	slices.SortFunc(out, func(x, y StuckJob) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Name, y.Name))
	})
	return out
}

// Believed returns those that a run believes that was cancelled on a node, or before it had one. What
// only the kubelet of one other node says it does not: one that lies would hold up the runs of all nodes.
func (all StuckJobs) Believed(node string) StuckJobs {
	said := map[string]bool{}
	for _, one := range all {
		said[one.Node] = true
	}
	delete(said, "")
	return slices.DeleteFunc(slices.Clone(all), func(one StuckJob) bool {
		return one.Node != "" && one.Node != node && len(said) == 1
	})
}

// IsDoubted reports whether a Job is one of them, and a run on a node does not believe it.
func (all StuckJobs) IsDoubted(job, node string) bool {
	named := func(one StuckJob) bool { return one.Name == job }
	return slices.ContainsFunc(all, named) && !slices.ContainsFunc(all.Believed(node), named)
}

// StuckOf returns why a Job makes no progress, as the caches and the kept event show it, or nil.
func (c *Caches) StuckOf(job *batchv1.Job, now time.Time) *runs.Stuck {
	stuck, _ := runs.StuckOf(job, c.PodsOf(job), c.keptWarning(job), now)
	return stuck
}
