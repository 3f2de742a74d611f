package pvs_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

const gi = 1 << 30

// trashOf returns released PVs: of each its name, its size and how many seconds after the others it
// was released, as in "a 3Gi 1". Without the seconds that is not known.
func trashOf(t *testing.T, described ...string) (out []*corev1.PersistentVolume) {
	t.Helper()
	for _, text := range described {
		words := strings.Fields(text)
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: words[0], UID: types.UID(words[0])}}
		pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(words[1])}
		if len(words) == 3 {
			after, err := time.ParseDuration(words[2] + "s")
			if err != nil {
				t.Fatal(err)
			}
			pv.Status.LastPhaseTransitionTime = new(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(after)))
		}
		out = append(out, pv)
	}
	return out
}

func TestTheOldestVolumesExceedALimit(t *testing.T) {
	for name, test := range map[string]struct {
		trash string
		limit int64
		gone  string
	}{
		"all fit":                             {"a 1Gi 1, b 2Gi 2, c 3Gi 3", 6 * gi, ""},
		"one byte too much":                   {"a 1Gi 1, b 2Gi 2, c 3Gi 3", 6*gi - 1, "a"},
		"two have to go":                      {"a 1Gi 1, b 2Gi 2, c 3Gi 3", 4 * gi, "a b"},
		"an older one that would fit goes":    {"a 1Gi 1, b 3Gi 2, c 2Gi 3", 4 * gi, "a b"},
		"one that is too large, and no other": {"a 1Gi 1, b 9Gi 2, c 2Gi 3", 4 * gi, "b"},
		"the newest is too large":             {"a 1Gi 1, b 2Gi 2, c 9Gi 3", 4 * gi, "c"},
		"small ones count as 1 GiB":           {"a 1 1, b 1Mi 2, c 1023Mi 3", 2 * gi, "a"},
		"the same second: the lower UID":      {"b 2Gi 1, a 2Gi 1, c 2Gi 1", 4 * gi, "a"},
		"an unknown time is the oldest":       {"b 2Gi, a 2Gi 1, c 2Gi 2", 4 * gi, "b"},
		"sizes beyond all numbers":            {"a 8Ei 1, b 8Ei 2, c 8Ei 3", 1 << 62, "a b c"},
		"the largest limit":                   {"a 8Ei 1, b 8Ei 2", 1<<63 - 1, "a"},
	} {
		trash := trashOf(t, strings.Split(test.trash, ",")...)
		var gone []string
		for _, pv := range pvs.BeyondLimit(trash, test.limit) {
			gone = append(gone, pv.Name)
		}
		slices.Sort(gone)
		if got := strings.Join(gone, " "); got != test.gone {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Such a PV may be forged, by whoever may write the PV of one claim.
func TestAVolumeThatWasNeverBoundMakesNoOtherGo(t *testing.T) {
	trash := trashOf(t, "kept 2Gi 1", "forged 4Gi 900")
	trash[1].CreationTimestamp = metav1.NewTime(trash[1].Status.LastPhaseTransitionTime.Add(-59 * time.Second))
	for _, limit := range []int64{4 * gi, 5 * gi} {
		if due := pvs.BeyondLimit(trash, limit); len(due) != 1 || due[0].Name != "forged" {
			t.Errorf("the limit %d makes %v due", limit, due)
		}
	}
	if due := pvs.BeyondLimit(trash, 6*gi); len(due) != 0 {
		t.Errorf("%v is due", due)
	}
	trash[1].CreationTimestamp = metav1.NewTime(trash[1].CreationTimestamp.Add(-time.Second))
	if due := pvs.BeyondLimit(trash, 5*gi); len(due) != 1 || due[0].Name != "kept" {
		t.Errorf("of two that were bound %v is due", due)
	}
}

func TestTrashIsWhatAClaimCouldStillGet(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		is     bool
	}{
		"released":         {func(*corev1.PersistentVolume) {}, true},
		"failed":           {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeFailed }, true},
		"bound":            {func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }, false},
		"retained":         {func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = "Retain" }, false},
		"being deleted":    {func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = new(metav1.Now()) }, false},
		"emptied":          {func(pv *corev1.PersistentVolume) { pv.Annotations[pvs.AnnEmpty] = pvs.ReleasedSince(pv) }, false},
		"reserved":         {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }, false},
		"never bound":      {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = pvs.NoClaim }, false},
		"without claimRef": {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, false},
		"another's name":   {func(pv *corev1.PersistentVolume) { pv.Name = "data" }, false},
		"without a mark":   {func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnClaimUID) }, false},
	} {
		pv := fixture.PV(t)
		pv.Status.Phase, pv.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete
		if test.change(pv); pvs.IsTrash(pv) != test.is {
			t.Errorf("%s: %t", name, !test.is)
		}
	}
}
