package fakecluster

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clienttesting "k8s.io/client-go/testing"
)

// patch knows merge patches, and strategic ones. Server-side apply is one too: the dispatcher is
// the only applier, applies the same fields always, and forces. It never creates, since a patch
// with a UID cannot.
func (s *Server) patch(by string, at Key, a clienttesting.PatchActionImpl) (Object, error) {
	s.overtaken("patch", at, a.Patch)
	old, err := s.get(at)
	if a.PatchType == types.ApplyPatchType && apierrors.IsNotFound(err) {
		return nil, at.conflict("uid mismatch: no existing object was found")
	}
	if err != nil {
		return nil, err
	}
	obj := old.DeepCopyObject().(Object)
	if a.PatchType == types.StrategicMergePatchType {
		obj, err = strategicPatch(old, a.Patch)
	} else {
		err = mergePatch(reflect.ValueOf(obj).Elem(), a.Patch)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	keepToSubresource(a.GetSubresource(), old, obj)
	if err := s.refusal(by, "patch", obj); err != nil {
		return nil, err
	}
	return s.update(by, "patch", at, obj)
}

// strategicPatch applies a strategic merge patch by Kubernetes' own code, as strategicPatchObject of
// staging/src/k8s.io/apiserver/pkg/endpoints/handlers/patch.go does.
func strategicPatch(old Object, patch []byte) (Object, error) {
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return nil, err
	}
	var change map[string]any
	if err := utiljson.Unmarshal(patch, &change); err != nil {
		return nil, err
	}
	obj := reflect.New(reflect.TypeOf(old).Elem()).Interface().(Object)
	merged, err := strategicpatch.StrategicMergeMapPatch(was, change, obj)
	if err != nil {
		return nil, err
	}
	return obj, runtime.DefaultUnstructuredConverter.FromUnstructured(merged, obj)
}

// keepToSubresource keeps a write on a claim to its status, or out of it.
func keepToSubresource(subresource string, old, obj Object) {
	was, isClaim := old.(*corev1.PersistentVolumeClaim)
	switch {
	case !isClaim:
	case subresource == "status":
		obj.(*corev1.PersistentVolumeClaim).Spec = was.Spec
	default:
		obj.(*corev1.PersistentVolumeClaim).Status = was.Status
	}
}

// mergePatch applies a JSON merge patch to what v holds: null takes away, an object goes into an
// object, and anything else replaces. Fields that the type does not have are dropped, as the API
// server does.
func mergePatch(v reflect.Value, patch json.RawMessage) error {
	if string(patch) == "null" {
		v.SetZero()
		return nil
	}
	_, decodesItself := reflect.TypeAssert[json.Unmarshaler](v.Addr())
	switch {
	case v.Kind() == reflect.Pointer && !decodesItself:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return mergePatch(v.Elem(), patch)
	case v.Kind() == reflect.Struct && !decodesItself:
		return mergeStruct(v, patch)
	case v.Kind() == reflect.Map:
		return mergeMap(v, patch)
	default:
		v.SetZero()
		return json.Unmarshal(patch, v.Addr().Interface())
	}
}

func mergeStruct(v reflect.Value, patch json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(patch, &members); err != nil {
		return err
	}
	fields := fieldsOf(v.Type())
	for name, member := range members {
		index, known := fields[name]
		if !known {
			continue
		}
		field, err := v.FieldByIndexErr(index)
		if err != nil {
			return err
		}
		if err := mergePatch(field, member); err != nil {
			return err
		}
	}
	return nil
}

func mergeMap(v reflect.Value, patch json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(patch, &members); err != nil {
		return err
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for name, member := range members {
		key := reflect.ValueOf(name).Convert(v.Type().Key())
		if string(member) == "null" {
			v.SetMapIndex(key, reflect.Value{})
			continue
		}
		value := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(key); old.IsValid() {
			value.Set(old)
		}
		if err := mergePatch(value, member); err != nil {
			return err
		}
		v.SetMapIndex(key, value)
	}
	return nil
}

// known holds the fields of each type.
var known sync.Map

// fieldsOf returns where a struct has the field of a JSON name.
func fieldsOf(t reflect.Type) map[string][]int {
	if fields, found := known.Load(t); found {
		return fields.(map[string][]int)
	}
	fields := map[string][]int{}
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = field.Index
		}
	}
	known.Store(t, fields)
	return fields
}
