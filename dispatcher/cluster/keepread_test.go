package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// All pages together are in memory before the first object is in a cache.
func TestOfAPageOnlyWhatIsReadIsKept(t *testing.T) {
	note := metav1.ObjectMeta{Name: "data", Annotations: map[string]string{"note": strings.Repeat("x", 250<<10)}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}
	claims := inPages(func(context.Context, metav1.ListOptions) (*corev1.PersistentVolumeClaimList, error) {
		return &corev1.PersistentVolumeClaimList{Items: []corev1.PersistentVolumeClaim{{ObjectMeta: note}}}, nil
	}, 1)
	volumes := inPages(func(context.Context, metav1.ListOptions) (*corev1.PersistentVolumeList, error) {
		return &corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{{ObjectMeta: note}}}, nil
	}, 1)
	page, err := claims(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if claim := page.(*metainternalversion.List).Items[0].(*corev1.PersistentVolumeClaim); claim.Name != "data" || claim.Annotations["note"] != "" || claim.ManagedFields != nil {
		t.Errorf("the claim is kept as %+v", claim.ObjectMeta)
	}
	if page, err = volumes(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if pv := page.(*metainternalversion.List).Items[0].(*corev1.PersistentVolume); pv.Name != "data" || pv.ManagedFields != nil {
		t.Errorf("the PV is kept as %+v", pv.ObjectMeta)
	}
	configs := inPages(func(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error) {
		return &corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: note, Data: map[string]string{"ca": strings.Repeat("x", 1<<20)}}}}, nil
	}, 1)
	if page, err = configs(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if cm := page.(*metainternalversion.List).Items[0].(*corev1.ConfigMap); cm.Name != "data" || cm.ManagedFields != nil || cm.Annotations["note"] != "" || len(cm.Data) > 0 {
		t.Errorf("the ConfigMap is kept as %+v", cm.ObjectMeta)
	}
}

// Its first list had one page, so the reflector asks for no pages.
func TestAListThatHasGrownSinceTheFirstComesInPages(t *testing.T) {
	var asked []metav1.ListOptions
	claims := inPages(func(_ context.Context, o metav1.ListOptions) (*corev1.PersistentVolumeClaimList, error) {
		asked = append(asked, o)
		page := &corev1.PersistentVolumeClaimList{Items: make([]corev1.PersistentVolumeClaim, 2)}
		if o.Continue == "" {
			page.Continue = "second"
		}
		return page, nil
	}, 2)
	all, err := claims(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
	if err != nil {
		t.Fatal(err)
	}
	if list := all.(*metainternalversion.List); len(list.Items) != 4 || list.Continue != "" {
		t.Errorf("%d claims, and the rest is %q", len(list.Items), list.Continue)
	}
	want := []metav1.ListOptions{{Limit: 2}, {Limit: 2, Continue: "second"}}
	if !slices.Equal(asked, want) {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
}
