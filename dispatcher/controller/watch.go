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

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
)

// Names of the caches' indexes.
const (
	byUID   = "uid"
	byClass = "class"
	byJob   = "job"
)

// caches are the watched objects: of the whole cluster, and of each config namespace.
type caches struct {
	claims, volumes, classes cache.Indexer
	spaces                   map[string]space

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
	b.add(&c.caches.claims, b.factory.Core().V1().PersistentVolumeClaims().Informer(), c.claimChanged,
		cache.Indexers{byUID: uidOf, byClass: classOfClaim})
	b.add(&c.caches.volumes, b.factory.Core().V1().PersistentVolumes().Informer(), c.volumeChanged, nil)
	b.add(&c.caches.classes, b.factory.Storage().V1().StorageClasses().Informer(), c.classChanged, nil)
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
	b.in(ns, contract.LabelManagedBy+"="+contract.ManagedBy)
	b.add(&s.revisions, b.factory.Apps().V1().ControllerRevisions().Informer(), c.revisionChanged, nil)
	b.add(&s.jobs, b.factory.Batch().V1().Jobs().Informer(), c.jobChanged, cache.Indexers{byUID: uidsOfJob, byClass: classLabelOf})
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
	b.factory = informers.NewSharedInformerFactoryWithOptions(b.client, 0,
		informers.WithNamespace(namespace),
		informers.WithTransform(withoutManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	b.caches.factories = append(b.caches.factories, b.factory)
}

func (b *watcher) add(at *cache.Indexer, informer cache.SharedIndexInformer, changed func(any), indexers cache.Indexers) {
	if b.err == nil && indexers != nil {
		b.err = informer.AddIndexers(indexers)
	}
	if b.err != nil {
		return
	}
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed,
		UpdateFunc: func(old, now any) {
			changed(old) // an index that an object has left wants to know as well
			changed(now)
		},
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			changed(obj)
		},
	})
	*at, b.err = informer.GetIndexer(), err
	if err == nil {
		b.caches.synced = append(b.caches.synced, handle.HasSynced)
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

func classOfClaim(obj any) ([]string, error) {
	return []string{className(obj.(*corev1.PersistentVolumeClaim))}, nil
}

func classOfConfig(obj any) ([]string, error) {
	return []string{obj.(*corev1.ConfigMap).Labels[contract.LabelStorageClass]}, nil
}

func classLabelOf(obj any) ([]string, error) {
	return []string{obj.(*batchv1.Job).Labels[contract.LabelClass]}, nil
}

func uidsOfJob(obj any) ([]string, error) {
	return strings.Split(obj.(*batchv1.Job).Annotations[contract.AnnUIDs], ","), nil
}

func jobOfPod(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Labels[batchv1.JobNameLabel]}, nil
}

func (c *Controller) claimChanged(obj any) {
	c.queue.Add(obj.(*corev1.PersistentVolumeClaim).UID)
}

// volumeChanged: a PV of ours is named after its claim's UID.
func (c *Controller) volumeChanged(obj any) {
	if uid, ours := strings.CutPrefix(obj.(*corev1.PersistentVolume).Name, contract.PVName("")); ours {
		c.queue.Add(types.UID(uid))
	}
}

// jobChanged: a Job that has ended may have made room for a claim that waits.
func (c *Controller) jobChanged(obj any) {
	job := obj.(*batchv1.Job)
	uids, _ := uidsOfJob(job)
	for _, uid := range uids {
		c.queue.Add(types.UID(uid))
	}
	if !job.DeletionTimestamp.IsZero() || job.Status.CompletionTime != nil || len(job.Status.Conditions) > 0 {
		c.classWaits(func(class string) bool {
			return config.ClassLabel(class) == job.Labels[contract.LabelClass]
		})
	}
}

func (c *Controller) podChanged(obj any) {
	if uid := obj.(*corev1.Pod).Labels[contract.LabelClaimUID]; uid != "" {
		c.queue.Add(types.UID(uid))
	}
}

func (c *Controller) classChanged(obj any) {
	name := obj.(*storagev1.StorageClass).Name
	c.classWaits(func(class string) bool { return class == name })
}

func (c *Controller) configChanged(obj any) {
	name := obj.(*corev1.ConfigMap).Labels[contract.LabelStorageClass]
	c.classWaits(func(class string) bool { return class == name })
}

// revisionChanged wakes what waits for a revision: claims of its class, and volumes made under it.
func (c *Controller) revisionChanged(obj any) {
	label := obj.(*appsv1.ControllerRevision).Labels[contract.LabelClass]
	c.classWaits(func(class string) bool { return config.ClassLabel(class) == label })
	for _, pv := range c.caches.volumes.List() {
		if config.ClassLabel(pv.(*corev1.PersistentVolume).Spec.StorageClassName) == label {
			c.volumeChanged(pv)
		}
	}
}

func (c *Controller) accountChanged(any) { c.classWaits(func(string) bool { return true }) }

// classWaits wakes the unbound claims of the classes that match.
func (c *Controller) classWaits(match func(class string) bool) {
	for _, class := range c.caches.claims.ListIndexFuncValues(byClass) {
		if class == "" || !match(class) {
			continue
		}
		waiting, _ := c.caches.claims.ByIndex(byClass, class)
		for _, obj := range waiting {
			if claim := obj.(*corev1.PersistentVolumeClaim); claim.Spec.VolumeName == "" {
				c.queue.Add(claim.UID)
			}
		}
	}
}

func (s caches) namespaces() []string {
	var out []string
	for ns := range s.spaces {
		out = append(out, ns)
	}
	slices.Sort(out)
	return out
}
