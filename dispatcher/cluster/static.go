package cluster

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
)

// NewStatic returns Caches that hold these objects, cut as the watches cut them, and watch nothing.
// A namespaced object that is not of the whole cluster must be in one of the config namespaces.
// client answers what is not cached.
func NewStatic(client kubernetes.Interface, namespaces []string, objects ...metav1.Object) (*Caches, error) {
	c := emptyCaches(client)
	c.warnings = newWarnings(flowcontrol.NewFakeAlwaysRateLimiter())
	c.Claims[""], c.PVs[""], c.Classes[""] = newIndexer(claimIndexers), newIndexer(pvIndexers), newIndexer(classIndexers)
	c.Nodes[""], c.Attachments[""] = newIndexer(nodeIndexers), newIndexer(attachmentIndexers)
	for _, ns := range namespaces {
		c.namespaces[ns] = nil
		c.Configs[ns], c.Accounts[ns], c.Revisions[ns] = newIndexer(configIndexers), newIndexer(nil), newIndexer(revisionIndexers)
		c.Jobs[ns], c.Pods[ns] = newIndexer(jobIndexers), newIndexer(podIndexers)
	}
	for _, obj := range objects {
		indexer := c.indexerOf(obj)
		if indexer == nil {
			return nil, fmt.Errorf("no cache contains %T %s/%s", obj, obj.GetNamespace(), obj.GetName())
		}
		if err := indexer.Add(cut.Kept(obj)); err != nil {
			return nil, fmt.Errorf("cache %T %s/%s: %w", obj, obj.GetNamespace(), obj.GetName(), err)
		}
	}
	return c, nil
}

func newIndexer(indexers cache.Indexers) cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
}

// indexerOf returns the cache of an object's kind and namespace, or nil.
func (c *Caches) indexerOf(obj metav1.Object) cache.Indexer {
	switch obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return c.Claims[""]
	case *corev1.PersistentVolume:
		return c.PVs[""]
	case *storagev1.StorageClass:
		return c.Classes[""]
	case *corev1.Node:
		return c.Nodes[""]
	case *storagev1.VolumeAttachment:
		return c.Attachments[""]
	default:
		return c.namespacedIndexerOf(obj)
	}
}

// namespacedIndexerOf returns the cache of an object's kind in a config namespace, or nil.
func (c *Caches) namespacedIndexerOf(obj metav1.Object) cache.Indexer {
	ns := obj.GetNamespace()
	switch obj.(type) {
	case *corev1.ConfigMap:
		return c.Configs[ns]
	case *corev1.ServiceAccount:
		return c.Accounts[ns]
	case *appsv1.ControllerRevision:
		return c.Revisions[ns]
	case *batchv1.Job:
		return c.Jobs[ns]
	case *corev1.Pod:
		return c.Pods[ns]
	default:
		return nil
	}
}
