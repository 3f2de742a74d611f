package cluster

import (
	"cmp"
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Caches are the watched objects: those of the whole cluster, and those of each config namespace.
type Caches struct {
	client kubernetes.Interface
	grants Grants

	claims, pvs, classes, nodes cache.Indexer
	attachments                 cache.Indexer // VolumeAttachments
	namespaces                  map[string]namespaced

	factories []informers.SharedInformerFactory
	synced    []cache.InformerSynced // of the cluster-wide informers
	access    access
	warnings  warnings
}

// namespaced is what is watched in one config namespace.
type namespaced struct {
	configs, accounts, revisions, jobs, pods cache.Indexer
	synced                                   []cache.InformerSynced
	jobsVersion                              func() string // up to which the Jobs are shown
}

// New sets up an informer for every kind that the dispatcher reads. Nothing is listed before Start. namespaces are
// the config namespaces. grants may be nil: then no claim may be cloned across namespaces.
func New(client kubernetes.Interface, namespaces []string, grants Grants, h Handlers) (*Caches, error) {
	c := &Caches{client: client, grants: grants, namespaces: map[string]namespaced{}}
	c.warnings.reads = flowcontrol.NewTokenBucketPassiveRateLimiter(warningReads, warningBurst)
	b := builder{client: client, caches: c}
	b.clusterWide(h)
	for _, ns := range namespaces {
		c.namespaces[ns] = b.namespaced(ns, h)
	}
	return c, b.err
}

// Start lists and watches until ctx ends.
func (c *Caches) Start(ctx context.Context) {
	for _, f := range c.factories {
		f.StartWithContext(ctx)
	}
}

// WaitForSync waits until every cache is filled and every handler has been called for its content. It returns false
// if ctx ended before. It does not wait for a namespace in which the dispatcher lacks permissions.
func (c *Caches) WaitForSync(ctx context.Context) bool {
	synced := slices.Clone(c.synced)
	for ns, s := range c.namespaces {
		for _, has := range s.synced {
			synced = append(synced, func() bool { return has() || c.access.missingIn(ns) != "" })
		}
	}
	return cache.WaitForCacheSync(ctx.Done(), synced...)
}

// Shutdown waits for the watches to end, after the context of Start has ended.
func (c *Caches) Shutdown() {
	for _, f := range c.factories {
		f.Shutdown()
	}
}

// Namespaces returns the config namespaces, sorted.
func (c *Caches) Namespaces() []string {
	var out []string
	for ns := range c.namespaces {
		out = append(out, ns)
	}
	slices.Sort(out)
	return out
}

// unwatched is what is watched in a namespace that is no config namespace: nothing.
var unwatched = func() namespaced {
	none := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	return namespaced{configs: none, accounts: none, revisions: none, jobs: none, pods: none}
}()

// in returns what is watched in a namespace.
func (c *Caches) in(namespace string) namespaced {
	if s, watched := c.namespaces[namespace]; watched {
		return s
	}
	return unwatched
}

// Class returns a storage class, or nil.
func (c *Caches) Class(name string) *storagev1.StorageClass {
	return byKey[*storagev1.StorageClass](c.classes, name)
}

// Classes returns every storage class.
func (c *Caches) Classes() []*storagev1.StorageClass {
	return ordered[*storagev1.StorageClass](c.classes.List(), nil)
}

// ClaimNamed returns the claim of this "namespace/name", or nil.
func (c *Caches) ClaimNamed(key string) *corev1.PersistentVolumeClaim {
	return byKey[*corev1.PersistentVolumeClaim](c.claims, key)
}

// ClonesOf returns the unbound claims that ask for a clone of the claim of this "namespace/name".
func (c *Caches) ClonesOf(key string) []*corev1.PersistentVolumeClaim {
	return ordered[*corev1.PersistentVolumeClaim](c.claims.ByIndex(bySource, key))
}

// ClaimsOfClass returns the claims of a class, by its label.
func (c *Caches) ClaimsOfClass(label string) []*corev1.PersistentVolumeClaim {
	return ordered[*corev1.PersistentVolumeClaim](c.claims.ByIndex(byClass, label))
}

// PVNamed returns a PV, or nil.
func (c *Caches) PVNamed(name string) *corev1.PersistentVolume {
	return byKey[*corev1.PersistentVolume](c.pvs, name)
}

// PVsOfUID returns the PVs that carry a claim's UID, or name the claim by it.
func (c *Caches) PVsOfUID(uid string) []*corev1.PersistentVolume {
	out := ordered[*corev1.PersistentVolume](c.pvs.ByIndex(byOwner, uid))
	if named := c.PVNamed(contract.PVName(uid)); named != nil && slices.Contains(pvs.Owners(named), uid) {
		out = append(out, named)
	}
	return out
}

// UnclaimedPVs returns the PVs that name no claim by its UID, and that have a claimant.
func (c *Caches) UnclaimedPVs(claimant string) []*corev1.PersistentVolume {
	return ordered[*corev1.PersistentVolume](c.pvs.ByIndex(byUnclaimed, claimant))
}

// PVsOfVolume returns the PVs that have the volume source of a PV, itself among them.
func (c *Caches) PVsOfVolume(pv *corev1.PersistentVolume) []*corev1.PersistentVolume {
	return ordered[*corev1.PersistentVolume](c.pvs.ByIndex(byVolumeSource, pvs.SourceKey(pv)))
}

// PVsOfClass returns the PVs of a class, by its label.
func (c *Caches) PVsOfClass(label string) []*corev1.PersistentVolume {
	return ordered[*corev1.PersistentVolume](c.pvs.ByIndex(byClass, label))
}

// ConfigsOf returns the ConfigMaps of a namespace that name a class.
func (c *Caches) ConfigsOf(namespace, class string) []*corev1.ConfigMap {
	return ordered[*corev1.ConfigMap](c.in(namespace).configs.ByIndex(byClass, config.ClassLabel(class)))
}

// ConfigNamed returns a provisioner ConfigMap, or nil.
func (c *Caches) ConfigNamed(namespace, name string) *corev1.ConfigMap {
	return byKey[*corev1.ConfigMap](c.in(namespace).configs, namespace+"/"+name)
}

// HasAccount reports whether a namespace has a ServiceAccount that carries the label of provisioners.
func (c *Caches) HasAccount(namespace, name string) bool {
	return byKey[*corev1.ServiceAccount](c.in(namespace).accounts, namespace+"/"+name) != nil
}

// Revision returns the stored config revision of this "namespace/name", or nil.
func (c *Caches) Revision(name string) *appsv1.ControllerRevision {
	ns, _, _ := cache.SplitMetaNamespaceKey(name)
	return byKey[*appsv1.ControllerRevision](c.in(ns).revisions, name)
}

// RevisionsOf returns the stored revisions of a config, by the beginning of their names.
func (c *Caches) RevisionsOf(namespace, configName string) []*appsv1.ControllerRevision {
	return ordered[*appsv1.ControllerRevision](c.in(namespace).revisions.ByIndex(byConfig, configName))
}

// NamespacesOfClass returns the config namespaces in which a revision of a class is stored, by the class's label.
func (c *Caches) NamespacesOfClass(label string) []string {
	return slices.DeleteFunc(c.Namespaces(), func(ns string) bool {
		found, err := c.in(ns).revisions.ByIndex(byClass, label)
		return err != nil || len(found) == 0
	})
}

// RevisionNames returns every stored revision, as "namespace/name".
func (c *Caches) RevisionNames() []string {
	var out []string
	for _, ns := range c.namespaces {
		out = append(out, ns.revisions.ListKeys()...)
	}
	slices.Sort(out)
	return out
}

// IsRevisionNamed reports whether a Job or a PV names a config revision, "namespace/name".
func (c *Caches) IsRevisionNamed(name string) bool {
	named := slices.Contains(c.pvs.ListIndexFuncValues(byRevision), name)
	for _, ns := range c.namespaces {
		named = named || slices.Contains(ns.jobs.ListIndexFuncValues(byRevision), name)
	}
	return named
}

// ShowJobs reports whether the cache of a namespace is as new as a list of its Jobs: it shows each of them, or has passed
// the list's version.
func (c *Caches) ShowJobs(namespace string, list *metav1.PartialObjectMetadataList) bool {
	s := c.in(namespace)
	if s.jobsVersion != nil && isAsNew(s.jobsVersion(), list.ResourceVersion) {
		return true
	}
	for i := range list.Items {
		job := c.JobNamed(namespace, list.Items[i].Name)
		if job == nil || !isAsNew(job.ResourceVersion, list.Items[i].ResourceVersion) {
			return false
		}
	}
	return true
}

// isAsNew reports whether a version is not older than another one of the same kind of objects.
func isAsNew(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order >= 0
}

// JobsOfUID returns the Jobs that serve a claim, in every config namespace.
func (c *Caches) JobsOfUID(uid string) []*batchv1.Job {
	var out []*batchv1.Job
	for _, ns := range c.Namespaces() {
		out = append(out, ordered[*batchv1.Job](c.in(ns).jobs.ByIndex(byUID, uid))...)
	}
	return out
}

// PVs returns every PV.
func (c *Caches) PVs() []*corev1.PersistentVolume {
	return ordered[*corev1.PersistentVolume](c.pvs.List(), nil)
}

// JobsOfClass returns the Jobs of a class, by its label, in every config namespace.
func (c *Caches) JobsOfClass(label string) []*batchv1.Job {
	var out []*batchv1.Job
	for _, ns := range c.Namespaces() {
		out = append(out, ordered[*batchv1.Job](c.in(ns).jobs.ByIndex(byClass, label))...)
	}
	return out
}

// KeptOfClass returns how many failed Jobs of a Job's class and namespace are kept for people to look at.
func (c *Caches) KeptOfClass(job *batchv1.Job) int {
	kept, err := c.in(job.Namespace).jobs.IndexKeys(byKept, job.Labels[config.LabelClass])
	if err != nil {
		return 0
	}
	return len(kept)
}

// JobNamed returns the Job of a namespace, or nil.
func (c *Caches) JobNamed(namespace, name string) *batchv1.Job {
	return byKey[*batchv1.Job](c.in(namespace).jobs, namespace+"/"+name)
}

// UnfinishedPods returns the pods of a class in a namespace that may still run.
func (c *Caches) UnfinishedPods(namespace, label string) []*corev1.Pod {
	return typed[*corev1.Pod](c.in(namespace).pods.ByIndex(byUnfinished, label))
}

// StartingLike returns the unfinished Jobs of a config revision, "namespace/name", that go to the same nodes.
func (c *Caches) StartingLike(revision, nodes string) []*batchv1.Job {
	ns, _, _ := cache.SplitMetaNamespaceKey(revision)
	all := ordered[*batchv1.Job](c.in(ns).jobs.ByIndex(byStart, revision))
	return slices.DeleteFunc(all, func(job *batchv1.Job) bool { return jobs.HeadOf(job).Nodes != nodes })
}

// UnfinishedJobs returns the Jobs of a class in a namespace that are neither Complete nor Failed, or that were recorded
// without a report from their node.
func (c *Caches) UnfinishedJobs(namespace, label string) []*batchv1.Job {
	return typed[*batchv1.Job](c.in(namespace).jobs.ByIndex(byUnfinished, label))
}

// ClassesWithUnfinishedJobs returns the labels of the classes that have unfinished Jobs in a namespace.
func (c *Caches) ClassesWithUnfinishedJobs(namespace string) []string {
	return c.in(namespace).jobs.ListIndexFuncValues(byUnfinished)
}

// ClassesInUse returns the labels of all classes that have a claim, a PV or a Job.
func (c *Caches) ClassesInUse() []string {
	labels := slices.Concat(c.claims.ListIndexFuncValues(byClass), c.pvs.ListIndexFuncValues(byClass))
	for _, ns := range c.namespaces {
		labels = append(labels, ns.jobs.ListIndexFuncValues(byClass)...)
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// PodsOf returns the pods of a Job, and not those of an earlier one of its name.
func (c *Caches) PodsOf(job *batchv1.Job) []*corev1.Pod {
	return runs.PodsOf(job, ordered[*corev1.Pod](c.in(job.Namespace).pods.ByIndex(byJob, job.Name)))
}

// PodsOfUID returns the pods of every Job that serves a claim, in every config namespace.
func (c *Caches) PodsOfUID(uid string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, ns := range c.Namespaces() {
		out = append(out, ordered[*corev1.Pod](c.in(ns).pods.ByIndex(byUID, uid))...)
	}
	return out
}

// PodsWithoutJob returns the pods whose Job no longer exists, in every config namespace.
func (c *Caches) PodsWithoutJob() []*corev1.Pod {
	var out []*corev1.Pod
	for _, ns := range c.Namespaces() {
		out = append(out, ordered[*corev1.Pod](c.in(ns).pods.List(), nil)...)
	}
	return slices.DeleteFunc(out, func(pod *corev1.Pod) bool { return c.JobNamed(pod.Namespace, pod.Labels[batchv1.JobNameLabel]) != nil })
}

// NodesNamed returns the nodes with this name or hostname label.
func (c *Caches) NodesNamed(name string) []*corev1.Node {
	return ordered[*corev1.Node](c.nodes.ByIndex(byNode, name))
}

// WaitingForNode returns the objects that may wait for a node, by the node's name or hostname label: unbound claims
// that have it selected, PVs with their volume there, and Jobs that are records of runs there. An empty name stands
// for the released PVs that name no single node.
func (c *Caches) WaitingForNode(name string) ([]*corev1.PersistentVolumeClaim, []*corev1.PersistentVolume, []*batchv1.Job) {
	var waiting []*batchv1.Job
	for _, ns := range c.Namespaces() {
		waiting = append(waiting, ordered[*batchv1.Job](c.in(ns).jobs.ByIndex(byNode, name))...)
	}
	return ordered[*corev1.PersistentVolumeClaim](c.claims.ByIndex(byNode, name)), ordered[*corev1.PersistentVolume](c.pvs.ByIndex(byNode, name)), waiting
}

// byKey returns the object of a key, or the zero value.
func byKey[T any](indexer cache.Indexer, key string) T {
	var none T
	obj, found, err := indexer.GetByKey(key)
	if err != nil || !found {
		return none
	}
	return obj.(T)
}

// ordered returns what an index has found, sorted by namespace and name: an index has no order, and what is enqueued should not depend on chance.
func ordered[T metav1.Object](found []any, err error) []T {
	out := typed[T](found, err)
	slices.SortFunc(out, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

// typed returns a list with its type, in any order. It ignores the error, since an index fails only if it does not exist.
func typed[T any](found []any, _ error) []T {
	out := make([]T, 0, len(found))
	for _, obj := range found {
		out = append(out, obj.(T))
	}
	return out
}
