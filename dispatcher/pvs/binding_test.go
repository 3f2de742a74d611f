package pvs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

func sizeOf(text string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
}

func TestMatchIsWhatKubernetesMayBind(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "data", UID: "uid-1"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("gold"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: sizeOf("2Gi")},
		},
	}
	ref := func(name, uid string) *corev1.ObjectReference {
		r := &corev1.ObjectReference{Namespace: "app", Name: name}
		r.UID = claim.UID
		if uid != string(claim.UID) {
			r.UID = ""
		}
		return r
	}
	for name, tt := range map[string]struct {
		change         func(*corev1.PersistentVolume)
		match, delayed bool // delayed: also where the scheduler selects the node
	}{
		"one of the class that is large enough": {func(*corev1.PersistentVolume) {}, true, false},
		"one that has no phase yet":             {func(pv *corev1.PersistentVolume) { pv.Status.Phase = "" }, true, false},
		"one that names the claim": {func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef, pv.Spec.StorageClassName = ref("data", ""), "other"
		}, true, true},
		"one that names the claim by its UID": {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = ref("data", "uid-1") }, true, true},
		"one that names another claim":        {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = ref("other", "") }, false, false},
		"one that is too small":               {func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = sizeOf("1Gi") }, false, false},
		"one of another class":                {func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "silver" }, false, false},
		"one without the access mode":         {func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes[0] = corev1.ReadOnlyMany }, false, false},
		"one of another volume mode":          {func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, false, false},
		"one that is being deleted":           {func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = new(metav1.Now()) }, false, false},
		"one that was released":               {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }, false, false},
		"the claim's own": {func(pv *corev1.PersistentVolume) {
			pv.Name, pv.Spec.ClaimRef = contract.PVName("uid-1"), ref("data", "uid-1")
		}, false, false},
	} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "static-1"}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}
		pv.Spec = corev1.PersistentVolumeSpec{
			StorageClassName: "gold", Capacity: sizeOf("5Gi"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		}
		tt.change(pv)
		all := []*corev1.PersistentVolume{pv}
		if got := pvs.Match(claim, all, false) != nil; got != tt.match {
			t.Errorf("%s: match %v, want %v", name, got, tt.match)
		}
		if got := pvs.Match(claim, all, true) != nil; got != tt.delayed {
			t.Errorf("%s, where the scheduler selects the node: match %v, want %v", name, got, tt.delayed)
		}
	}
}

func TestOnlyThePVControllerSaysThatItAsksForANewPV(t *testing.T) {
	const newer, older = "volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"
	for name, tt := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"no annotation":         {nil, false},
		"both, as it writes":    {map[string]string{newer: "a", older: "a"}, true},
		"stamped when created":  {map[string]string{newer: "a"}, false},
		"of an older one alone": {map[string]string{older: "a"}, true},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations}}
		if got := pvs.IsAskedFor(claim); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestAClaimMayGetAnotherPVByItsClassItsNameOrASelector(t *testing.T) {
	named := &corev1.ObjectReference{Namespace: "app", Name: "data"}
	for name, tt := range map[string]struct {
		pv           *corev1.PersistentVolume
		selects      bool
		may, delayed bool
	}{
		"no PV":                {nil, false, false, false},
		"one of the class":     {&corev1.PersistentVolume{}, false, true, false},
		"one that names it":    {&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: named}}, false, true, true},
		"no PV and a selector": {nil, true, true, true},
		"its own":              {&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: contract.PVName("uid-1")}, Spec: corev1.PersistentVolumeSpec{ClaimRef: named}}, false, false, false},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "uid-1"}}
		if tt.selects {
			claim.Spec.Selector = &metav1.LabelSelector{}
		}
		var all []*corev1.PersistentVolume
		if tt.pv != nil {
			all = append(all, tt.pv)
		}
		if may, delayed := pvs.MayGetOther(claim, all, false), pvs.MayGetOther(claim, all, true); may != tt.may || delayed != tt.delayed {
			t.Errorf("%s: %t, and %t where the scheduler selects the node", name, may, delayed)
		}
	}
}
