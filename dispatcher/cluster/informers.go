package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
)

// Handlers are called with each object that was added, changed or deleted. For a changed object
// they are called twice, with its old and its new state, unless a handler takes both: an index that
// the object has left needs the old one.
type Handlers struct {
	// Active reports whether those of claims and PVs are called. A replica that does not lead has
	// nothing to do for any, and all of a cluster come while its caches are filled.
	Active func() bool

	Claim           func(*corev1.PersistentVolumeClaim) // added and deleted ones
	ClaimUpdated    func(old, now *corev1.PersistentVolumeClaim)
	PV              func(*corev1.PersistentVolume) // added and deleted ones
	PVUpdated       func(old, now *corev1.PersistentVolume)
	Class           func(*storagev1.StorageClass)
	Node            func(*corev1.Node)             // changes of labels only
	Detached        func(*corev1.PersistentVolume) // its volume may be attached to one node less
	Config          func(*corev1.ConfigMap)
	Account         func(*corev1.ServiceAccount)
	Revision        func(*appsv1.ControllerRevision)
	RevisionUpdated func(old, now *appsv1.ControllerRevision)
	Job             func(*batchv1.Job) // added and deleted ones
	JobUpdated      func(old, now *batchv1.Job)
	Pod             func(*corev1.Pod) // added and deleted ones
	PodUpdated      func(old, now *corev1.Pod)
}

// builder adds informers one by one and keeps the first error.
type builder struct {
	client  kubernetes.Interface
	caches  *Caches
	factory informers.SharedInformerFactory
	synced  []cache.InformerSynced // of the informers since the last takeSynced
	err     error
}

func (b *builder) clusterWide(h Handlers) {
	b.use("", "")
	b.caches.Claims[""] = b.add(b.claims(), h.whileActive(onUpdate(h.Claim, h.ClaimUpdated)), claimIndexers)
	b.caches.PVs[""] = b.add(b.volumes(), h.whileActive(onUpdate(h.PV, h.PVUpdated)), pvIndexers)
	b.caches.Classes[""] = b.add(b.factory.Storage().V1().StorageClasses().Informer(), onChange(h.Class), classIndexers)
	b.caches.Nodes[""] = b.add(b.factory.Core().V1().Nodes().Informer(), b.onNode(h), nodeIndexers)
	b.caches.Attachments[""] = b.add(b.factory.Storage().V1().VolumeAttachments().Informer(), b.onAttachment(h), attachmentIndexers)
	b.caches.synced = b.takeSynced()
}

// namespaced watches what the dispatcher needs in a config namespace, and nothing else there.
func (b *builder) namespaced(ns string, h Handlers) []cache.InformerSynced {
	b.use(ns, "")
	b.caches.Configs[ns] = b.add(b.configs(ns, contract.LabelType+"="+contract.TypeConfig), onChange(h.Config), configIndexers)
	b.use(ns, contract.LabelProvisioner+"=true")
	b.caches.Accounts[ns] = b.add(b.factory.Core().V1().ServiceAccounts().Informer(), onChange(h.Account), nil)
	b.use(ns, config.SelectManaged)
	b.caches.Revisions[ns] = b.add(b.revisions(ns, config.SelectManaged), onUpdate(h.Revision, h.RevisionUpdated), revisionIndexers)
	b.use(ns, config.SelectRuns(b.caches.provisioner))
	b.caches.Jobs[ns] = b.add(b.factory.Batch().V1().Jobs().Informer(), onUpdate(h.Job, h.JobUpdated), jobIndexers)
	b.caches.Pods[ns] = b.add(b.factory.Core().V1().Pods().Informer(), onUpdate(h.Pod, h.PodUpdated), podIndexers)
	return b.takeSynced()
}

func (b *builder) takeSynced() []cache.InformerSynced {
	taken := b.synced
	b.synced = nil
	return taken
}

// use sets up the factory of the informers that are added next.
func (b *builder) use(namespace, selector string) {
	b.factory = informers.NewSharedInformerFactoryWithOptions(b.client, 0,
		informers.WithNamespace(namespace),
		informers.WithTransform(cut.Transform),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	b.caches.factories = append(b.caches.factories, b.factory)
}

func (b *builder) add(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler, indexers cache.Indexers) cache.Indexer {
	if b.err == nil && indexers != nil {
		b.err = informer.AddIndexers(indexers)
	}
	if b.err != nil {
		return nil
	}
	registration, err := informer.AddEventHandler(handler)
	if b.err = err; err == nil {
		b.synced = append(b.synced, registration.HasSynced)
	}
	return informer.GetIndexer()
}

func onChange[T any](changed func(T)) cache.ResourceEventHandler {
	return onUpdate(changed, func(old, now T) {
		changed(old)
		changed(now)
	})
}

func onUpdate[T any](changed func(T), updated func(old, now T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(cut.Whole(obj).(T)) },
		UpdateFunc: func(old, now any) { updated(cut.Whole(old).(T), cut.Whole(now).(T)) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			changed(cut.Whole(obj).(T))
		},
	}
}

// whileActive leaves what is at rest as it is kept while the handlers have nothing to do.
func (h Handlers) whileActive(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return cache.FilteringResourceEventHandler{FilterFunc: func(any) bool { return h.Active() }, Handler: handler}
}

// NoHandlers returns the Handlers of whoever only reads the caches.
func NoHandlers() Handlers {
	return Handlers{
		Active: func() bool { return false }, Detached: ignore[*corev1.PersistentVolume],
		Class: ignore[*storagev1.StorageClass], Node: ignore[*corev1.Node],
		Config: ignore[*corev1.ConfigMap], Account: ignore[*corev1.ServiceAccount],
		Revision: ignore[*appsv1.ControllerRevision], RevisionUpdated: ignoreUpdate[*appsv1.ControllerRevision],
		Job: ignore[*batchv1.Job], JobUpdated: ignoreUpdate[*batchv1.Job], Pod: ignore[*corev1.Pod], PodUpdated: ignoreUpdate[*corev1.Pod],
	}
}

func ignore[T any](T) {}

func ignoreUpdate[T any](T, T) {}
