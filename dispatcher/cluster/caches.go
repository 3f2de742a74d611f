package cluster

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Caches are the watched objects: those of the whole cluster, and those of each config namespace.
type Caches struct {
	client      kubernetes.Interface
	grants      Grants
	provisioner string

	Claims      Store[*corev1.PersistentVolumeClaim]
	PVs         Store[*corev1.PersistentVolume]
	Classes     Store[*storagev1.StorageClass]
	Nodes       Store[*corev1.Node]
	Attachments Store[*storagev1.VolumeAttachment]
	Configs     Store[*corev1.ConfigMap]
	Accounts    Store[*corev1.ServiceAccount] // those with the label of provisioners
	Revisions   Store[*appsv1.ControllerRevision]
	Jobs        Store[*batchv1.Job]
	Pods        Store[*corev1.Pod]

	namespaces map[string][]cache.InformerSynced // of each config namespace

	factories []informers.SharedInformerFactory
	synced    []cache.InformerSynced // of the cluster-wide informers
	access    access
	warnings  warnings
}

// emptyCaches returns Caches that watch nothing.
func emptyCaches(client kubernetes.Interface) *Caches {
	return &Caches{
		client: client, namespaces: map[string][]cache.InformerSynced{},
		Claims: Store[*corev1.PersistentVolumeClaim]{}, PVs: Store[*corev1.PersistentVolume]{}, Classes: Store[*storagev1.StorageClass]{},
		Nodes: Store[*corev1.Node]{}, Attachments: Store[*storagev1.VolumeAttachment]{}, Configs: Store[*corev1.ConfigMap]{},
		Accounts: Store[*corev1.ServiceAccount]{}, Revisions: Store[*appsv1.ControllerRevision]{}, Jobs: Store[*batchv1.Job]{}, Pods: Store[*corev1.Pod]{},
	}
}

// New sets up an informer for every kind that the dispatcher reads. Nothing is listed before Start.
// Of Jobs and pods only those of the provisioner are. namespaces are the config namespaces. grants
// may be nil: then no claim may be cloned across namespaces.
func New(client kubernetes.Interface, provisioner string, namespaces []string, grants Grants, h Handlers) (*Caches, error) {
	c := emptyCaches(client)
	c.grants, c.provisioner = grants, provisioner
	c.warnings = newWarnings(flowcontrol.NewTokenBucketPassiveRateLimiter(warningReads, warningBurst))
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

// WaitForSync waits until every cache is filled and every handler has been called for its content.
// It returns false if ctx ended before. It does not wait for a namespace in which the dispatcher
// lacks permissions.
func (c *Caches) WaitForSync(ctx context.Context) bool {
	synced := slices.Clone(c.synced)
	for ns, s := range c.namespaces {
		for _, has := range s {
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

// ClaimOf returns the claim with a UID, or nil.
func (c *Caches) ClaimOf(uid types.UID) *corev1.PersistentVolumeClaim {
	found := c.Claims.by(ByUID, bucketOf(string(uid)), func(obj any) bool { return obj.(named).GetUID() == uid })
	if len(found) == 0 {
		return nil
	}
	return cut.Whole(found[0]).(*corev1.PersistentVolumeClaim)
}

// PVsOfSource returns the PVs with the volume source of a PV, if it has one.
func (c *Caches) PVsOfSource(pv *corev1.PersistentVolume) []*corev1.PersistentVolume {
	key := pvs.SourceKey(pv)
	if key == "" {
		return nil
	}
	found := c.PVs.by(ByVolumeSource, bucketOf(key), func(obj any) bool { return cut.SourceKey(obj) == key })
	return wholes[*corev1.PersistentVolume](found)
}

// PVsOfUID returns the PVs that carry a claim's UID, or name the claim by it.
func (c *Caches) PVsOfUID(uid string) []*corev1.PersistentVolume {
	out := c.PVs.By(ByOwner, uid)
	if named := c.PVs.Named(contract.PVName(uid)); named != nil && slices.Contains(pvs.Owners(named), uid) {
		out = append(out, named)
	}
	return out
}

// NamespacesOfClass returns the config namespaces in which a revision of a class is stored, by the
// class's label.
func (c *Caches) NamespacesOfClass(label string) []string {
	return slices.DeleteFunc(c.Namespaces(), func(ns string) bool {
		return len(c.Revisions.In(ns).By(ByClass, label)) == 0
	})
}

// ClassesOf returns the labels of the classes that a ConfigMap may serve: the one of its label, and
// those that name it. own is the namespace of the configs of classes that name no other.
func (c *Caches) ClassesOf(cm *corev1.ConfigMap, own string) []string {
	var labels []string
	if class := cm.Labels[contract.LabelStorageClass]; class != "" {
		labels = append(labels, config.ClassLabel(class))
	}
	for _, class := range c.Classes.By(ByConfig, cm.Name) {
		if config.NamespaceFor(class, own) == cm.Namespace {
			labels = append(labels, config.ClassLabel(class.Name))
		}
	}
	return labels
}

// IsRevisionNamed reports whether a Job or a PV names a config revision, "namespace/name".
func (c *Caches) IsRevisionNamed(name string) bool {
	return slices.Contains(c.PVs.Keys(ByRevision), name) || slices.Contains(c.Jobs.Keys(ByRevision), name)
}

// ShowJobs reports whether the cache of a namespace is as new as a list of its Jobs: it shows each
// of them, or has passed the list's version.
func (c *Caches) ShowJobs(namespace string, list *metav1.PartialObjectMetadataList) bool {
	if c.HavePassed(namespace, list.ResourceVersion) {
		return true
	}
	for i := range list.Items {
		job := c.Jobs.Named(namespace + "/" + list.Items[i].Name)
		if job == nil || !isAsNew(job.ResourceVersion, list.Items[i].ResourceVersion) {
			return false
		}
	}
	return true
}

// HavePassed reports whether the cache of a namespace's Jobs is as new as a version of theirs.
func (c *Caches) HavePassed(namespace, version string) bool {
	return isAsNew(c.Jobs[namespace].LastStoreSyncResourceVersion(), version)
}

// isAsNew reports whether a version is not older than another one of the same kind of objects.
func isAsNew(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order >= 0
}

// StartingLike returns the unfinished Jobs of a config revision, "namespace/name", that go to the
// same nodes.
func (c *Caches) StartingLike(revision, nodes string) []*batchv1.Job {
	ns, _, _ := cache.SplitMetaNamespaceKey(revision)
	return c.Jobs.In(ns).By(ByStart, startKey(revision, nodes))
}

// ClassesInUse returns the labels of all classes that have a claim, a PV or a Job.
func (c *Caches) ClassesInUse() []string {
	labels := slices.Concat(c.Claims.Keys(ByClass), c.PVs.Keys(ByClass), c.Jobs.Keys(ByClass))
	slices.Sort(labels)
	return slices.Compact(labels)
}

// PodsOf returns the pods of a Job, and not those of an earlier one of its name.
func (c *Caches) PodsOf(job *batchv1.Job) []*corev1.Pod {
	return runs.PodsOf(job, c.Pods.In(job.Namespace).By(ByJob, job.Name))
}

// PodsWithoutJob returns the pods whose Job no longer exists, in every config namespace.
func (c *Caches) PodsWithoutJob() []*corev1.Pod {
	return slices.DeleteFunc(c.Pods.All(), func(pod *corev1.Pod) bool {
		return c.Jobs.Named(pod.Namespace+"/"+pod.Labels[batchv1.JobNameLabel]) != nil
	})
}

// WaitingForNode returns the objects that may wait for a node, by the node's name or hostname
// label. These are unbound claims that have it selected, PVs with their volume there, and Jobs that
// are records of runs there. An empty name stands for the released PVs that name no single node.
func (c *Caches) WaitingForNode(name string) ([]*corev1.PersistentVolumeClaim, []*corev1.PersistentVolume, []*batchv1.Job) {
	return c.Claims.By(ByNode, name), c.PVs.By(ByNode, name), c.Jobs.By(ByNode, name)
}

// KeyOf returns the key of a Job, "namespace/name".
func KeyOf(job *batchv1.Job) string { return job.Namespace + "/" + job.Name }
