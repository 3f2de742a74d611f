package fakecluster

import (
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	timeType      = reflect.TypeFor[metav1.Time]()
	microTimeType = reflect.TypeFor[metav1.MicroTime]()
	// timed holds which types have a time somewhere in them, timedIn which fields of a struct do.
	timed, timedIn sync.Map
)

// asStored makes an object what it would be after its way over the wire: times in whole seconds, no
// type in it.
func asStored(obj Object) {
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	obj.SetManagedFields(nil)
	truncateTimes(reflect.ValueOf(obj))
}

func truncateTimes(v reflect.Value) {
	if !hasTime(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			truncateTimes(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			truncateTimes(v.Index(i))
		}
	case reflect.Struct:
		truncateStruct(v)
	default: // no type of Kubernetes has times in a map
	}
}

func truncateStruct(v reflect.Value) {
	switch t := v.Addr().Interface().(type) {
	case *metav1.Time:
		t.Time = t.Truncate(time.Second)
	case *metav1.MicroTime:
		t.Time = t.Truncate(time.Microsecond)
	default:
		for _, i := range timedFields(v.Type()) {
			truncateTimes(v.Field(i))
		}
	}
}

func hasTime(t reflect.Type) bool {
	if known, found := timed.Load(t); found {
		return known.(bool)
	}
	has := false
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		has = hasTime(t.Elem())
	case reflect.Struct:
		has = t == timeType || t == microTimeType
		for i := 0; i < t.NumField() && !has; i++ {
			has = t.Field(i).IsExported() && hasTime(t.Field(i).Type)
		}
	default:
	}
	timed.Store(t, has)
	return has
}

// timedFields returns the fields of a struct that have a time somewhere in them.
func timedFields(t reflect.Type) []int {
	if known, found := timedIn.Load(t); found {
		return known.([]int)
	}
	var out []int
	for i := range t.NumField() {
		if t.Field(i).IsExported() && hasTime(t.Field(i).Type) {
			out = append(out, i)
		}
	}
	timedIn.Store(t, out)
	return out
}
