package cluster

import (
	"cmp"
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
func (s Store[T]) By(index, key string) []T {
	return wholes[T](s.by(index, key, anyOf))
}

// Moving returns of what By returns the objects that are not at rest.
func (s Store[T]) Moving(index, key string) []T {
	return wholes[T](s.by(index, key, func(obj any) bool { return !isResting(obj) }))
}

// Resting returns the others, as they are kept: all of a cluster, as a whole, need much memory.
func (s Store[T]) Resting(index, key string) []*cut.Resting {
	var out []*cut.Resting
	for _, obj := range s.by(index, key, isResting) {
		out = append(out, obj.(*cut.Resting))
	}
	return out
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
	return wholes[T](sorted(out))
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

// wholes returns the objects, which are kept, as a whole.
func wholes[T any](kept []any) []T {
	var out []T
	for _, obj := range kept {
		out = append(out, cut.Whole(obj).(T))
	}
	return out
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

// sorted sorts objects by namespace and name, which one at rest has to look for.
func sorted[T any](all []T) []T {
	type keyed struct {
		namespace, name string
		obj             T
	}
	keys := make([]keyed, 0, len(all))
	for _, one := range all {
		obj := any(one).(named)
		keys = append(keys, keyed{obj.GetNamespace(), obj.GetName(), one})
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	for i, key := range keys {
		all[i] = key.obj
	}
	return all
}
