package pvs_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// size returns a change that gives a PV another capacity.
func size(quantity string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(quantity)}
	}
}

func TestMismatchNamesEverythingThatPreventsTheBinding(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		words  []string // none if it fits
	}{
		"as the skeleton has it": {func(*corev1.PersistentVolume) {}, nil},
		"larger":                 {size("2Gi"), nil},
		"of another class":       {func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "tin" }, nil},
		"more access modes": {func(pv *corev1.PersistentVolume) {
			pv.Spec.AccessModes = append(pv.Spec.AccessModes, corev1.ReadOnlyMany)
		}, nil},
		"no mode at all":           {func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = nil }, nil},
		"a claimRef without a UID": {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }, nil},
		"smaller":                  {size("1023Mi"), []string{"has the capacity 1023Mi, and the claim requests 1Gi"}},
		"no size":                  {func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = nil }, []string{"has the capacity 0"}},
		"another volumeMode":       {func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }, []string{"volumeMode Block", "requests Filesystem"}},
		"without the access mode": {func(pv *corev1.PersistentVolume) {
			pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
		}, []string{"lacks the access mode ReadWriteOnce"}},
		"no claimRef":                {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, []string{"no claimRef"}},
		"another claim's UID":        {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" }, []string{"another claim", "UID another"}},
		"another claim's name":       {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.Name = "", "other" }, []string{"another claim", "/other"}},
		"its UID, another's name":    {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name = "other" }, []string{"another claim", "/other with the UID " + fixture.UID}},
		"another namespace":          {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Namespace = "other" }, []string{"another claim", "other/"}},
		"other volume attributes":    {func(pv *corev1.PersistentVolume) { pv.Spec.VolumeAttributesClassName = new("fast") }, []string{`"fast"`, `requests ""`}},
		"deleted":                    {func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = new(metav1.Now()) }, []string{"being deleted"}},
		"two faults are told both":   {func(pv *corev1.PersistentVolume) { size("1Mi")(pv); pv.Spec.AccessModes = nil }, []string{"has the capacity 1Mi", "lacks the access mode"}},
		"neither fault hides a PV's": {func(pv *corev1.PersistentVolume) { size("1Mi")(pv); pv.Spec.ClaimRef = nil }, []string{"has the capacity 1Mi", "no claimRef"}},
	} {
		pv := fixture.PV(t)
		test.change(pv)
		got := pvs.Mismatch(pv, fixture.Claim())
		if (got == "") != (len(test.words) == 0) {
			t.Errorf("%s: %q", name, got)
		}
		for _, word := range test.words {
			if !strings.Contains(got, word) {
				t.Errorf("%s: %q lacks %q", name, got, word)
			}
		}
	}
}

func TestPVIsNeverBoundOnlyIfNoClaimCanHaveBeen(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		never  bool
	}{
		"just written":           {func(*corev1.PersistentVolume) {}, true},
		"seen by its controller": {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeAvailable }, true},
		"bound":                  {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }, false},
		"released":               {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }, false},
		"failed":                 {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeFailed }, false},
		"for anybody":            {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, false},
		"for anybody again": {func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef = nil
			pv.Annotations["pv.kubernetes.io/bound-by-controller"] = "yes"
		}, false},
		"claimRef to another claim":     {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" }, false},
		"handed to whoever has a name":  {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.Name = "", "other" }, false},
		"handed to the claim by a name": {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }, false},
		"taken from its claim": {func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.UID, pv.Status.Phase = pvs.NoClaim, corev1.VolumeReleased
		}, true},
	} {
		pv := fixture.PV(t)
		pv.Status.Phase = corev1.VolumePending
		test.change(pv)
		if got := pvs.NeverBound(pv, fixture.Claim()); got != test.never {
			t.Errorf("%s: %v", name, got)
		}
		bound := fixture.Claim()
		bound.Spec.VolumeName = "another"
		if pvs.NeverBound(pv, nil) || pvs.NeverBound(pv, bound) {
			t.Errorf("%s: without an unbound claim nothing proves it", name)
		}
	}
}

func TestRivalCarriesTheUIDOrAppearedAfterARunThatSucceeded(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	unmarked := func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnClaimUID) }
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		since  time.Time
		rival  bool
	}{
		"under another name":                   {func(*corev1.PersistentVolume) {}, time.Time{}, true},
		"under its own name":                   {func(pv *corev1.PersistentVolume) { pv.Name = "pvc-" + fixture.UID }, start, false},
		"unmarked, after a run that was done":  {unmarked, start, true},
		"unmarked, before it":                  {unmarked, start.Add(time.Hour), false},
		"unmarked, half a minute before it":    {unmarked, start.Add(90 * time.Second), true},
		"unmarked, and no run was done":        {unmarked, time.Time{}, false},
		"unmarked, and for another claim, too": {func(pv *corev1.PersistentVolume) { unmarked(pv); pv.Spec.ClaimRef.UID = "x" }, start, false},
		"unmarked, and for nobody":             {func(pv *corev1.PersistentVolume) { unmarked(pv); pv.Spec.ClaimRef = nil }, start, false},
	} {
		pv := fixture.PV(t)
		pv.Name, pv.CreationTimestamp = "mine", metav1.NewTime(start.Add(time.Minute))
		test.change(pv)
		if got := pvs.WhyRival(pv, nil, fixture.UID, test.since); (got != "") != test.rival {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestRivalHasTheVolumeSource(t *testing.T) {
	elsewhere := func(pv *corev1.PersistentVolume) { pv.Spec.NFS.Path = "/elsewhere" }
	none := func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{} }
	as := func(*corev1.PersistentVolume) {}
	gone := func(pv *corev1.PersistentVolume) {
		pv.DeletionTimestamp, pv.Status.Phase = new(metav1.Now()), corev1.VolumeReleased
	}
	on := func(node string) func(pv *corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/dev/sdb"}}
			if pv.Spec.NodeAffinity = nil; node != "" {
				pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
				}}}}
			}
		}
	}
	for name, test := range map[string]struct {
		own, other func(*corev1.PersistentVolume)
		rival      bool
	}{
		"the same":                  {as, as, true},
		"another":                   {as, elsewhere, false},
		"none":                      {none, none, false},
		"a device of the same node": {on("a"), on("a"), true},
		"a device of another node":  {on("a"), on("b"), false},
		"a device of any node":      {on("a"), on(""), true},
		"the same, released, going": {as, gone, false},
		"the same, bound, going": {as, func(pv *corev1.PersistentVolume) {
			pv.DeletionTimestamp, pv.Status.Phase = new(metav1.Now()), corev1.VolumeBound
		}, true},
	} {
		own, other := fixture.PV(t), fixture.PV(t)
		own.Name, other.Name, other.Annotations, other.Spec.ClaimRef = contract.PVName(fixture.UID), "other", nil, nil
		test.own(own)
		test.other(other)
		if got := pvs.WhyRival(other, own, fixture.UID, time.Time{}); (got != "") != test.rival {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestAPVWithoutMarksHasNoOwners(t *testing.T) {
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Name: "data"}}}
	if got := pvs.Owners(pv); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}
