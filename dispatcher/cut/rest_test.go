package cut

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// full returns an object with something in every field, but for those that say that it is not at rest.
func full[T metav1.Object](obj T) T {
	long(reflect.ValueOf(obj).Elem(), 2)
	obj.SetManagedFields(nil)
	obj.SetDeletionTimestamp(nil)
	obj.SetCreationTimestamp(metav1.Unix(1_800_000_000, 0))
	annotations := obj.GetAnnotations()
	for _, key := range append([]string{contract.AnnMessage, contract.AnnProvisionTS, contract.AnnClaimUID}, commonOf...) {
		annotations[key] = "value of " + key
	}
	return obj
}

func fullClaim() *corev1.PersistentVolumeClaim {
	claim, size := full(&corev1.PersistentVolumeClaim{}), corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}
	claim.Spec.Resources = corev1.VolumeResourceRequirements{Requests: size, Limits: size}
	claim.Status.Phase, claim.Status.Capacity, claim.Status.AllocatedResources = corev1.ClaimBound, size, size
	return claim
}

func fullPV() *corev1.PersistentVolume {
	pv := full(&corev1.PersistentVolume{})
	pv.Status.Phase, pv.Status.LastPhaseTransitionTime = corev1.VolumeBound, new(metav1.Unix(1_800_003_600, 0))
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")}
	return pv
}

// What is decided does not depend on whether an object was at rest when it came.
func TestAnObjectAtRestLosesNothing(t *testing.T) {
	whole := fixture.PV(t)
	whole.Status.Phase = corev1.VolumeBound
	for _, obj := range []metav1.Object{
		fullClaim(), fullPV(), whole, Claim(fixture.Claim(bound)), PV(whole), Claim(fullClaim()), PV(fullPV()),
	} {
		before := fmt.Sprint(obj)
		kept, is := rest(obj).(*Resting)
		if !is {
			t.Errorf("%T is not at rest", obj)
			continue
		}
		for range 2 { // the second is that of wholes
			if diff := cmp.Diff(obj, Whole(kept), nilIsEmpty); diff != "" {
				t.Errorf("%T (-whole +kept):\n%s", obj, diff)
			}
		}
		if diff := cmp.Diff(obj, kept.whole(), nilIsEmpty); diff != "" {
			t.Errorf("%T, decoded again (-whole +kept):\n%s", obj, diff)
		}
		if before != fmt.Sprint(obj) {
			t.Errorf("%T was written to", obj)
		}
		if Kept(kept) != any(kept) || kept.DeepCopyObject() != kept {
			t.Errorf("%T is kept again", obj)
		}
	}
}

// nilIsEmpty compares annotations and labels as Kubernetes does.
var nilIsEmpty = cmp.Transformer("nilIsEmpty", func(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	return all
})

// An informer stores an object by its name, and handles it by its version.
func TestAnInformerReadsTheHeadOfAnObjectAtRest(t *testing.T) {
	claim := fixture.Claim(bound, func(c *corev1.PersistentVolumeClaim) { c.ResourceVersion = "12" })
	m, err := meta.Accessor(Kept(claim))
	if err != nil {
		t.Fatal(err)
	}
	want := [4]string{claim.Namespace, claim.Name, string(claim.UID), "12"}
	if got := [4]string{m.GetNamespace(), m.GetName(), string(m.GetUID()), m.GetResourceVersion()}; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestOnlyWhatIsAtRestIsKeptSo(t *testing.T) {
	deleted := metav1.Now()
	for name, obj := range map[string]any{
		"a waiting claim":     fixture.Claim(),
		"a claim that grows":  fixture.Claim(bound, func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = nil }),
		"a claim in deletion": fixture.Claim(bound, func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &deleted }),
		"a lost claim":        fixture.Claim(bound, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }),
		"a released PV":       &corev1.PersistentVolume{Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased}},
		"a PV in deletion":    &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleted}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}},
		"a name that cannot be told from what follows": fixture.Claim(bound, func(c *corev1.PersistentVolumeClaim) { c.UID = "a\x00b" }),
	} {
		if _, is := Kept(obj).(*Resting); is {
			t.Errorf("%s is at rest", name)
		}
	}
}

// The parts that many have need more memory than what each has of its own.
func TestWhatManyHaveInCommonIsKeptOnce(t *testing.T) {
	pvOf := func(i int) *Resting {
		pv := fixture.PV(t)
		pv.Status.Phase = corev1.VolumeBound
		uid := fmt.Sprint(i)
		pv.Name, pv.UID, pv.ResourceVersion = contract.PVName(uid), types.UID("pv-"+uid), uid
		pv.Annotations[contract.AnnClaimUID], pv.Spec.ClaimRef = uid, &corev1.ObjectReference{Namespace: "app", Name: uid, UID: types.UID(uid)}
		return Kept(pv).(*Resting)
	}
	claimOf := func(i int) *Resting {
		return Kept(fixture.Claim(bound, func(c *corev1.PersistentVolumeClaim) {
			uid := fmt.Sprint(i)
			c.Name, c.UID, c.ResourceVersion, c.Spec.VolumeName = "data-"+uid, types.UID(uid), uid, contract.PVName(uid)
			c.Annotations = map[string]string{contract.AnnProvisionTS: uid, contract.AnnMessage: "created " + uid, contract.AnnResult: "succeeded"}
		})).(*Resting)
	}
	for _, pair := range [][2]*Resting{{pvOf(1), pvOf(2)}, {claimOf(1), claimOf(2)}} {
		if pair[0].common != pair[1].common {
			t.Errorf("%s and %s have nothing in common (-one +other):\n%s", pair[0].GetName(), pair[1].GetName(), cmp.Diff(pair[0].common, pair[1].common))
		}
	}
}
