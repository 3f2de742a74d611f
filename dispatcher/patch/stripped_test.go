package patch

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAnAnswerIsComparedWithWhatWasWritten(t *testing.T) {
	old := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"ours", "protection"}}}
	for _, tt := range []struct {
		name, patch string
		answer      corev1.PersistentVolume
		want        []string
	}{
		{"an annotation", `{"metadata":{"annotations":{"a":"1"}}}`, annotated("a", "1"), nil},
		{"an annotation, stripped", `{"metadata":{"annotations":{"a":"1"}}}`, annotated("b", "1"), []string{"the annotation a"}},
		{"an annotation, changed", `{"metadata":{"annotations":{"a":"1"}}}`, annotated("a", "2"), []string{"the annotation a"}},
		{"no annotation", `{"metadata":{"annotations":{"a":null}}}`, annotated("b", "1"), nil},
		{"no annotation, still there", `{"metadata":{"annotations":{"a":null}}}`, annotated("a", "1"), []string{"the removal of the annotation a"}},
		{"a finalizer", `{"metadata":{"finalizers":["ours","protection","new"]}}`, finalized("ours", "protection", "new"), nil},
		{"a finalizer, stripped", `{"metadata":{"finalizers":["ours","protection","new"]}}`, finalized("ours", "protection"), []string{"the finalizer new"}},
		{"no finalizer", `{"metadata":{"finalizers":["protection"]}}`, finalized("protection"), nil},
		{"no finalizer, another added", `{"metadata":{"finalizers":["protection"]}}`, finalized("protection", "webhook"), nil},
		{"no finalizer, still there", `{"metadata":{"finalizers":["protection"]}}`, finalized("protection", "ours"), []string{"the removal of the finalizer ours"}},
		{"none at all, still there", `{"metadata":{"finalizers":[]}}`, finalized("ours"), []string{"the removal of the finalizer ours"}},
		{"a capacity, spelt", `{"spec":{"capacity":{"storage":"1024Mi"}}}`, sized("1Gi"), nil},
		{"a capacity, changed", `{"spec":{"capacity":{"storage":"2Gi"}}}`, sized("1Gi"), []string{"the capacity 2Gi"}},
		{"what is not compared", `{"metadata":{"uid":"x"},"spec":{"other":1},"status":{}}`, corev1.PersistentVolume{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := missingAfter(old, &tt.answer, []byte(tt.patch))
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("missing %q, %v, want %q", got, err, tt.want)
			}
			if err := UnlessMissing(got); IsStripped(err) != (len(tt.want) > 0) {
				t.Errorf("refused: %v", err)
			}
		})
	}
}

func annotated(key, value string) corev1.PersistentVolume {
	return corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}}
}

func finalized(names ...string) corev1.PersistentVolume {
	return corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Finalizers: names}}
}

func sized(size string) corev1.PersistentVolume {
	return corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{Capacity: corev1.ResourceList{"storage": resource.MustParse(size)}}}
}
