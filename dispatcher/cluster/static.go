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

// NewStatic returns Caches that hold these objects, cut as the watches cut them, and watch nothing. A namespaced object that is not of the whole
// cluster must be in one of the config namespaces. client answers what is not cached.
func NewStatic(client kubernetes.Interface, namespaces []string, objects ...metav1.Object) (*Caches, error) {
	c := &Caches{
		client: client, namespaces: map[string]namespaced{},
		claims: newIndexer(claimIndexers), pvs: newIndexer(pvIndexers), classes: newIndexer(nil), nodes: newIndexer(nodeIndexers),
		attachments: newIndexer(attachmentIndexers), warnings: warnings{reads: flowcontrol.NewFakeAlwaysRateLimiter()},
	}
	for _, ns := range namespaces {
		c.namespaces[ns] = namespaced{
			configs: newIndexer(configIndexers), accounts: newIndexer(nil), revisions: newIndexer(revisionIndexers),
			jobs: newIndexer(jobIndexers), pods: newIndexer(podIndexers),
		}
	}
	for _, obj := range objects {
		indexer := c.indexerOf(obj)
		if indexer == nil {
			return nil, fmt.Errorf("no cache holds %T %s/%s", obj, obj.GetNamespace(), obj.GetName())
		}
		if err := indexer.Add(cut.Object(obj)); err != nil {
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
		return c.claims
	case *corev1.PersistentVolume:
		return c.pvs
	case *storagev1.StorageClass:
		return c.classes
	case *corev1.Node:
		return c.nodes
	case *storagev1.VolumeAttachment:
		return c.attachments
	default:
		return c.namespaces[obj.GetNamespace()].indexerOf(obj)
	}
}

// indexerOf returns the cache of an object's kind in a config namespace, or nil.
func (ns namespaced) indexerOf(obj metav1.Object) cache.Indexer {
	switch obj.(type) {
	case *corev1.ConfigMap:
		return ns.configs
	case *corev1.ServiceAccount:
		return ns.accounts
	case *appsv1.ControllerRevision:
		return ns.revisions
	case *batchv1.Job:
		return ns.jobs
	case *corev1.Pod:
		return ns.pods
	default:
		return nil
	}
}
