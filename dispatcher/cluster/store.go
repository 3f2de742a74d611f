package cluster

import (
	"cmp"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
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
			return cut.Whole(obj).(T)
		}
	}
	return none
}

// By returns the objects that an index has under a key, sorted by namespace and name: an index has
// no order, and what is enqueued should not depend on chance.
func (s Store[T]) By(index, key string) []T { return slices.Collect(s.Each(index, key)) }

// Each yields what By returns one by one: all that are at rest, as a whole, need much memory.
func (s Store[T]) Each(index, key string) iter.Seq[T] { return wholes[T](s.by(index, key, anyOf)) }

// Moving returns of what By returns the objects that are not at rest.
func (s Store[T]) Moving(index, key string) []T {
	return slices.Collect(wholes[T](s.by(index, key, func(obj any) bool { return !isResting(obj) })))
}

// Rests reports whether the object with a name is at rest.
func (s Store[T]) Rests(key string) bool {
	for _, indexer := range s {
		if obj, found, err := indexer.GetByKey(key); err == nil && found {
			return isResting(obj)
		}
	}
	return false
}

// All returns every object, sorted by namespace and name.
func (s Store[T]) All() []T {
	var out []any
	for _, indexer := range s {
		out = append(out, indexer.List()...)
	}
	return slices.Collect(wholes[T](sorted(out)))
}

// Keys returns the keys of an index, in any order.
func (s Store[T]) Keys(index string) []string {
	var out []string
	for _, indexer := range s {
		out = append(out, indexer.ListIndexFuncValues(index)...)
	}
	return out
}

// by returns of the objects that an index has under a key those that are asked for, as they are kept,
// sorted.
func (s Store[T]) by(index, key string, asked func(any) bool) []any {
	var out []any
	for _, indexer := range s {
		found, err := indexer.ByIndex(index, key)
		if err != nil {
			panic(err) // the kind has no such index
		}
		for _, obj := range found {
			if asked(obj) {
				out = append(out, obj)
			}
		}
	}
	return sorted(out)
}

func anyOf(any) bool { return true }

// wholes yields the objects, which are kept, as a whole.
func wholes[T any](kept []any) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, obj := range kept {
			if !yield(cut.Whole(obj).(T)) {
				return
			}
		}
	}
}

func isResting(obj any) bool {
	_, ok := obj.(*cut.Resting)
	return ok
}

// named is an object, also one at rest.
type named interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
}

func sorted[T any](all []T) []T {
	slices.SortFunc(all, func(x, y T) int {
		a, b := any(x).(named), any(y).(named)
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}
