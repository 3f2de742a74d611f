package admin

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

// pageSize is how many objects are listed at a time. Users write up to 1.5 MiB on each.
const pageSize = 100

// Each lists objects page by page. keep must keep nothing of what it does not need.
func Each[O any, L runtime.Object](ctx context.Context, list func(context.Context, metav1.ListOptions) (L, error), o metav1.ListOptions, keep func(O)) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return list(ctx, o) })
	pages.PageSize, pages.PageBufferSize = pageSize, 0
	return pages.EachListItem(ctx, o, func(obj runtime.Object) error {
		keep(obj.(O))
		return nil
	})
}
