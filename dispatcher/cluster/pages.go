package cluster

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
)

// An API server that streams lists sends one object after the other, and each is cut when it comes.
// One whose feature gate WatchList is off does not. A list of all claims with all that users wrote
// on them then needed more memory than the limit, and so does one of ConfigMaps of 1 MiB.

// claimsOfAPage is how many claims a page has, or PVs: each may have 1.5 MiB of labels and
// annotations. A page of 500, client-go's own, would have 750 MiB then. With 250 KiB on each claim
// the dispatcher was measured at 550 MiB (docs/performance.md).
const claimsOfAPage = 100

// claims returns the informer of all claims.
func (b *builder) claims() cache.SharedIndexInformer {
	return b.factory.InformerFor(&corev1.PersistentVolumeClaim{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		api := client.CoreV1().PersistentVolumeClaims("")
		watcher := &cache.ListWatch{ListWithContextFunc: inPages(api.List, claimsOfAPage), WatchFuncWithContext: api.Watch}
		return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(watcher, client), &corev1.PersistentVolumeClaim{}, resync, cache.Indexers{})
	})
}

// volumes returns the informer of all PVs.
func (b *builder) volumes() cache.SharedIndexInformer {
	return b.factory.InformerFor(&corev1.PersistentVolume{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		api := client.CoreV1().PersistentVolumes()
		watcher := &cache.ListWatch{ListWithContextFunc: inPages(api.List, claimsOfAPage), WatchFuncWithContext: api.Watch}
		return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(watcher, client), &corev1.PersistentVolume{}, resync, cache.Indexers{})
	})
}

// LargeOfAPage is how many ConfigMaps a page has, or revisions, which hold what is in one: each may
// have 1 MiB.
const LargeOfAPage = 20

// configs returns the informer of a namespace's ConfigMaps that a selector selects.
func (b *builder) configs(namespace, selector string) cache.SharedIndexInformer {
	return b.factory.InformerFor(&corev1.ConfigMap{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		api := client.CoreV1().ConfigMaps(namespace)
		return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(large(api.List, api.Watch, selector), client), &corev1.ConfigMap{}, resync, cache.Indexers{})
	})
}

// revisions returns the informer of a namespace's config revisions that a selector selects.
func (b *builder) revisions(namespace, selector string) cache.SharedIndexInformer {
	return b.factory.InformerFor(&appsv1.ControllerRevision{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		api := client.AppsV1().ControllerRevisions(namespace)
		return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(large(api.List, api.Watch, selector), client), &appsv1.ControllerRevision{}, resync, cache.Indexers{})
	})
}

// large lists large objects that a selector selects, in small pages.
func large[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error), watched func(context.Context, metav1.ListOptions) (watch.Interface, error), selector string,
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: inPages(func(ctx context.Context, o metav1.ListOptions) (L, error) {
			o.LabelSelector = selector
			return list(ctx, o)
		}, LargeOfAPage),
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return watched(ctx, o)
		},
	}
}

// inPages returns a function that lists in pages of at most so many objects, and keeps of each page
// only what is read. A reflector pages by itself only if its first list had several pages
// (Reflector.list of client-go), so a list that has grown since came whole
// (TestAListThatHasGrownSinceTheFirstComesInPages). Asked for any version, an API server ignores how
// many objects a page may have, so it is asked for the newest. Without a limit, which is how an
// expired list is repeated, the list stays whole.
func inPages[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error), most int64) cache.ListWithContextFunc {
	return func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		o.Limit, o.ResourceVersion, o.ResourceVersionMatch = most, "", ""
		all, _, err := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			page, err := list(ctx, o)
			if err != nil {
				return nil, err
			}
			return keptOf(page)
		}).List(ctx, o)
		return all, err
	}
}

// keptOf returns a list with what is read of a page's objects.
func keptOf(page runtime.Object) (*metainternalversion.List, error) {
	m, err := meta.ListAccessor(page)
	if err != nil {
		return nil, err
	}
	kept := &metainternalversion.List{ListMeta: metav1.ListMeta{ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue()}}
	err = meta.EachListItemWithAlloc(page, func(obj runtime.Object) error {
		kept.Items = append(kept.Items, cut.Kept(obj).(runtime.Object))
		return nil
	})
	return kept, err
}
