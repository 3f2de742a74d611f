package controller

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Names of the caches' indexes.
const (
	byUID   = "uid"
	byClass = "class"
	byJob   = "job"
	// byConfig finds a config's revisions.
	byConfig = "config"
	// byUnfinished finds a class's Jobs that have not finished.
	byUnfinished = "unfinished"
	// byRevision finds the Jobs and PVs that name a config revision.
	byRevision = "revision"
	// byOwner finds the PVs that carry a claim's UID, or name the claim by it.
	byOwner = "owner"
	// byNode finds what waits for a node, by the node's name or hostname label: claims that are not bound,
	// volumes of ours, Jobs that are records. Nodes are found by both.
	byNode = "node"
	// bySource finds the unbound claims that ask for a copy of a claim.
	bySource = "source"
)

// caches are the watched objects: of the whole cluster, and of each config namespace.
type caches struct {
	claims, volumes, classes, nodesByName cache.Indexer
	spaces                                map[string]space

	factories []informers.SharedInformerFactory
	synced    []cache.InformerSynced
}

// space is what is watched in one config namespace.
type space struct {
	configs, accounts, revisions, jobs, pods cache.Indexer
}

func (s caches) start(ctx context.Context) {
	for _, f := range s.factories {
		f.StartWithContext(ctx)
	}
}

func (s caches) shutdown() {
	for _, f := range s.factories {
		f.Shutdown()
	}
}

// watch sets up every informer and what its changes lead to.
func (c *Controller) watch() error {
	b := watcher{client: c.client, caches: &c.caches}
	b.in("", "")
	claims := b.factory.Core().V1().PersistentVolumeClaims().Informer()
	b.add(&c.caches.claims, claims, c.claimChanged, cache.Indexers{byUID: uidOf, byClass: classOfClaim, bySource: sourceOfClaim, byNode: nodeOfClaim})
	b.follow(claims, c.claimUpdated)
	b.add(&c.caches.volumes, b.factory.Core().V1().PersistentVolumes().Informer(), c.volumeChanged,
		cache.Indexers{byClass: classOfVolume, byRevision: revisionNamed, byOwner: ownersOfVolume, byNode: nodeOfVolume})
	b.add(&c.caches.classes, b.factory.Storage().V1().StorageClasses().Informer(), c.classChanged, nil)
	b.through("", "", onlyLabels)
	b.handle(&c.caches.nodesByName, b.factory.Core().V1().Nodes().Informer(), c.nodeHandler(), cache.Indexers{byNode: namesOfNode})
	c.caches.spaces = map[string]space{}
	for _, ns := range c.opts.Namespaces {
		c.caches.spaces[ns] = b.space(c, ns)
	}
	return b.err
}

// space watches what the dispatcher needs of a config namespace, and nothing else in it.
func (b *watcher) space(c *Controller, ns string) space {
	var s space
	b.in(ns, contract.LabelType+"="+contract.TypeConfig)
	b.add(&s.configs, b.factory.Core().V1().ConfigMaps().Informer(), c.configChanged, cache.Indexers{byClass: classOfConfig})
	b.in(ns, contract.LabelProvisioner+"=true")
	b.add(&s.accounts, b.factory.Core().V1().ServiceAccounts().Informer(), c.accountChanged, nil)
	b.in(ns, config.LabelManagedBy+"="+config.ManagedBy)
	b.add(&s.revisions, b.factory.Apps().V1().ControllerRevisions().Informer(), c.revisionChanged, cache.Indexers{byConfig: configOfRevision})
	b.handle(&s.jobs, b.factory.Batch().V1().Jobs().Informer(), handlers(c.jobChanged, func(old, now any) {
		c.jobUpdated(old.(*batchv1.Job), now.(*batchv1.Job))
	}),
		cache.Indexers{byUID: uidsOfJob, byClass: classOfJob, byUnfinished: classOfUnfinished, byRevision: revisionNamed, byNode: nodeOfJob})
	b.add(&s.pods, b.factory.Core().V1().Pods().Informer(), c.podChanged, cache.Indexers{byJob: jobOfPod})
	return s
}

// watcher adds informers one by one and keeps the first error.
type watcher struct {
	client  kubernetes.Interface
	caches  *caches
	factory informers.SharedInformerFactory
	err     error
}

func (b *watcher) in(namespace, selector string) {
	b.through(namespace, selector, withoutManagedFields)
}

func (b *watcher) through(namespace, selector string, transform cache.TransformFunc) {
	b.factory = informers.NewSharedInformerFactoryWithOptions(b.client, 0,
		informers.WithNamespace(namespace),
		informers.WithTransform(transform),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	b.caches.factories = append(b.caches.factories, b.factory)
}

func (b *watcher) add(at *cache.Indexer, informer cache.SharedIndexInformer, changed func(any), indexers cache.Indexers) {
	b.handle(at, informer, handlers(changed, func(old, now any) {
		changed(old) // an index that an object has left wants to know as well
		changed(now)
	}), indexers)
}

func (b *watcher) handle(at *cache.Indexer, informer cache.SharedIndexInformer, does cache.ResourceEventHandler, indexers cache.Indexers) {
	if b.err == nil && indexers != nil {
		b.err = informer.AddIndexers(indexers)
	}
	if b.err != nil {
		return
	}
	handle, err := informer.AddEventHandler(does)
	*at, b.err = informer.GetIndexer(), err
	if err == nil {
		b.caches.synced = append(b.caches.synced, handle.HasSynced)
	}
}

func handlers(changed func(any), updated func(old, now any)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    changed,
		UpdateFunc: updated,
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			changed(obj)
		},
	}
}

// follow tells of updates what was before and what is now.
func (b *watcher) follow(informer cache.SharedIndexInformer, updated func(old, now any)) {
	if b.err == nil {
		_, b.err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: updated})
	}
}

func withoutManagedFields(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

func uidOf(obj any) ([]string, error) {
	return []string{string(obj.(*corev1.PersistentVolumeClaim).UID)}, nil
}

func sourceOfClaim(obj any) ([]string, error) {
	claim := obj.(*corev1.PersistentVolumeClaim)
	name, _ := sourceOf(claim)
	if name.Name == "" || claim.Spec.VolumeName != "" {
		return nil, nil
	}
	return []string{name.String()}, nil
}

// The indexes by class all have the class's label as key, the only name of it that a Job carries.
func classOfClaim(obj any) ([]string, error) {
	return []string{config.ClassLabel(className(obj.(*corev1.PersistentVolumeClaim)))}, nil
}

func classOfVolume(obj any) ([]string, error) {
	return []string{config.ClassLabel(obj.(*corev1.PersistentVolume).Spec.StorageClassName)}, nil
}

func classOfConfig(obj any) ([]string, error) {
	return []string{config.ClassLabel(obj.(*corev1.ConfigMap).Labels[contract.LabelStorageClass])}, nil
}

func classOfJob(obj any) ([]string, error) {
	return []string{obj.(*batchv1.Job).Labels[config.LabelClass]}, nil
}

func classOfUnfinished(obj any) ([]string, error) {
	if runs.Finished(obj.(*batchv1.Job)) {
		return nil, nil
	}
	return classOfJob(obj)
}

func configOfRevision(obj any) ([]string, error) {
	return []string{config.NameOfRevision(obj.(*appsv1.ControllerRevision).Name)}, nil
}

// revisionNamed: Jobs and PVs name a revision by the same annotation.
func revisionNamed(obj any) ([]string, error) {
	return []string{obj.(metav1.Object).GetAnnotations()[contract.AnnRevision]}, nil
}

func uidsOfJob(obj any) ([]string, error) {
	return jobs.UIDs(obj.(*batchv1.Job)), nil
}

func jobOfPod(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Labels[batchv1.JobNameLabel]}, nil
}

// claimChanged: a populator's claim is bound to the PV of another UID, which wants to know when it goes.
func (c *Controller) claimChanged(obj any) {
	claim := obj.(*corev1.PersistentVolumeClaim)
	c.queue.Add(claim.UID)
	c.wakeVolume(claim.Spec.VolumeName)
	copies, _ := c.caches.claims.ByIndex(bySource, claim.Namespace+"/"+claim.Name)
	for _, obj := range copies {
		c.queue.Add(obj.(*corev1.PersistentVolumeClaim).UID)
	}
}

func (c *Controller) volumeChanged(obj any) {
	pv := obj.(*corev1.PersistentVolume)
	c.wakeVolume(pv.Name)
	c.wakeOwners(pv)
	c.wakeRevision(pv.Annotations[contract.AnnRevision])
}

// wakeVolume: a PV of ours is named after its claim's UID.
func (c *Controller) wakeVolume(name string) {
	if uid, ours := strings.CutPrefix(name, contract.PVName("")); ours {
		c.queue.Add(types.UID(uid))
	}
}

// jobChanged: a Job that has ended may have made room for another of its class.
func (c *Controller) jobChanged(obj any) {
	job := obj.(*batchv1.Job)
	c.turns.seen(job)
	c.wakeRevision(job.Annotations[contract.AnnRevision])
	c.wakeJob(job)
	if !job.DeletionTimestamp.IsZero() || job.Status.CompletionTime != nil || len(job.Status.Conditions) > 0 {
		c.admit(counterOfJob(job))
	}
}

func (c *Controller) wakeJob(job *batchv1.Job) {
	uids, _ := uidsOfJob(job)
	for _, uid := range uids {
		c.queue.Add(types.UID(uid))
	}
}

func (c *Controller) podChanged(obj any) {
	for label := range obj.(*corev1.Pod).Labels {
		if uid, ours := strings.CutPrefix(label, jobs.LabelMember); ours {
			c.queue.Add(types.UID(uid))
		}
	}
}

func (c *Controller) classChanged(obj any) {
	c.wakeClass(config.ClassLabel(obj.(*storagev1.StorageClass).Name))
}

func (c *Controller) configChanged(obj any) {
	cm := obj.(*corev1.ConfigMap)
	c.wakeRevisions(cm.Namespace, cm.Name)
	c.wakeClass(config.ClassLabel(cm.Labels[contract.LabelStorageClass]))
}

func (c *Controller) revisionChanged(obj any) {
	stored := obj.(*appsv1.ControllerRevision)
	c.wakeRevisions(stored.Namespace, config.NameOfRevision(stored.Name))
	c.wakeClass(stored.Labels[config.LabelClass])
}

func (c *Controller) accountChanged(any) {
	c.wakeAll(c.caches.claims, c.caches.volumes)
	for _, s := range c.caches.spaces {
		c.wakeAll(s.jobs)
	}
}

func (c *Controller) wakeAll(indexers ...cache.Indexer) {
	for _, indexer := range indexers {
		for _, label := range indexer.ListIndexFuncValues(byClass) {
			c.wakeClass(label)
		}
	}
}

// wakeClass wakes whatever may wait for something of a class: claims to be provisioned or to be given
// more, volumes to be deleted, and runs to be undone, whose claim may have gone and of which there is no PV.
func (c *Controller) wakeClass(label string) {
	for _, obj := range indexed(c.caches.claims, label) {
		switch claim := obj.(*corev1.PersistentVolumeClaim); {
		case claim.Spec.VolumeName == "":
			c.queue.Add(claim.UID)
		case growing(claim):
			c.wakeVolume(claim.Spec.VolumeName)
		}
	}
	for _, obj := range indexed(c.caches.volumes, label) {
		if pv := obj.(*corev1.PersistentVolume); released(pv) {
			c.volumeChanged(pv)
		}
	}
	for _, s := range c.caches.spaces {
		for _, obj := range indexed(s.jobs, label) {
			if job := obj.(*batchv1.Job); slices.Contains(job.Finalizers, jobs.FinalizerRecord) {
				c.wakeJob(job)
			}
		}
	}
}

func indexed(indexer cache.Indexer, label string) []any {
	found, err := indexer.ByIndex(byClass, label)
	if err != nil {
		return nil // only when the index does not exist
	}
	return found
}

func (s caches) namespaces() []string {
	var out []string
	for ns := range s.spaces {
		out = append(out, ns)
	}
	slices.Sort(out)
	return out
}
