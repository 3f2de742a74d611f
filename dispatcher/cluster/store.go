package cluster

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Store is what is watched of one kind of objects, by config namespace. What is watched in the
// whole cluster has no namespace.
type Store[T metav1.Object] map[string]cache.Indexer

// In returns what is watched in one config namespace. It is nothing if the namespace is none.
func (s Store[T]) In(namespace string) Store[T] {
	if s[namespace] == nil {
		return nil
	}
	return Store[T]{namespace: s[namespace]}
}

// Named returns the object with a name, for those in namespaces "namespace/name", or nil.
func (s Store[T]) Named(key string) T {
	var none T
	for _, indexer := range s {
		if obj, found, err := indexer.GetByKey(key); err == nil && found {
			return obj.(T)
		}
	}
	return none
}

// By returns the objects that an index has under a key, sorted by namespace and name: an index has
// no order, and what is enqueued should not depend on chance.
func (s Store[T]) By(index, key string) []T {
	var out []T
	for _, indexer := range s {
		found, err := indexer.ByIndex(index, key)
		if err != nil {
			panic(err) // the kind has no such index
		}
		out = appendTyped(out, found)
	}
	return sorted(out)
}

// All returns every object, sorted by namespace and name.
func (s Store[T]) All() []T {
	var out []T
	for _, indexer := range s {
		out = appendTyped(out, indexer.List())
	}
	return sorted(out)
}

// Keys returns the keys of an index, in any order.
func (s Store[T]) Keys(index string) []string {
	var out []string
	for _, indexer := range s {
		out = append(out, indexer.ListIndexFuncValues(index)...)
	}
	return out
}

func appendTyped[T any](out []T, found []any) []T {
	out = slices.Grow(out, len(found))
	for _, obj := range found {
		out = append(out, obj.(T))
	}
	return out
}

func sorted[T metav1.Object](all []T) []T {
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}
