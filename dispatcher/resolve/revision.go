package resolve

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Siblings returns the stored revisions of the same class in the same namespace, of which the newest
// has the highest number. Many classes may have one ConfigMap, and the one of a class may have
// another name with each edit.
func (f *Resolver) Siblings(src config.Source) []*appsv1.ControllerRevision {
	return f.Caches.Revisions.In(src.Namespace).By(cluster.ByClass, config.ClassLabel(src.Class))
}

// isCurrent reports whether a source is stored as its class's newest revision, which is the
// fallback if the next edit is faulty. One that is marked as unused may be deleted at any moment,
// so it does not count as stored until the mark has been removed.
func (f *Resolver) isCurrent(src config.Source) bool {
	stored := f.Caches.Revisions.Named(src.Revision())
	return stored != nil && stored.Annotations[config.AnnUnusedSince] == "" && stored.Revision == NewestNumber(f.Siblings(src))
}

// NewestNumber returns the highest number of some revisions.
func NewestNumber(revisions []*appsv1.ControllerRevision) int64 {
	var last int64
	for _, r := range revisions {
		last = max(last, r.Revision)
	}
	return last
}

// lastGood returns the newest stored revision of a class whose ConfigMap is faulty now, or is not
// the only one. It is of one of these ConfigMaps. It skips the revisions of a class that was
// recreated with other parameters, since that is another request.
func (f *Resolver) lastGood(src config.Source, of ...*corev1.ConfigMap) (config.Config, bool) {
	newestFirst := slices.SortedFunc(slices.Values(f.Siblings(src)), func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(b.Revision, a.Revision) })
	for _, r := range newestFirst {
		judged := f.JudgeStored(r)
		old := judged.Source
		isOfOne := slices.ContainsFunc(of, func(cm *corev1.ConfigMap) bool { return cm.Name == old.Name })
		if isOfOne && judged.Damaged == nil && isSameClass(old, src) && f.problemWith(judged) == nil {
			return judged.Config, true
		}
	}
	return config.Config{}, false
}

// isSameClass reports whether two sources are of one class that was not changed in between.
func isSameClass(a, b config.Source) bool {
	return a.Class == b.Class && a.Reclaim == b.Reclaim && maps.Equal(a.Parameters, b.Parameters)
}
