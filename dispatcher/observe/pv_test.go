package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestWhatAPVSaysOfItsProvision(t *testing.T) {
	annotated := func(name, value string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Annotations[name] = value }
	}
	small := func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = nil }
	unclaimed := func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }
	unnamed := func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }
	unbound, bound := fixture.Claim(), fixture.Claim()
	bound.Spec.VolumeName = "pvc-" + fixture.UID
	own := fixture.PV(t).Annotations[contract.AnnRevision]
	for name, tt := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		change func(*corev1.PersistentVolume)
		served []string
		want   decide.State
		why    bool
	}{
		"as written":                         {unbound, func(*corev1.PersistentVolume) {}, []string{own}, decide.Fits, false},
		"its claim is bound":                 {bound, func(*corev1.PersistentVolume) {}, []string{own}, decide.Fits, false},
		"its claim is gone":                  {nil, func(*corev1.PersistentVolume) {}, nil, decide.Fits, false},
		"another provisioner's":              {unbound, annotated(contract.AnnProvisionedBy, "other.example.com"), []string{own}, decide.Foreign, true},
		"without the mark":                   {unbound, annotated(contract.AnnClaimUID, ""), []string{own}, decide.Unproven, true},
		"another revision":                   {unbound, annotated(contract.AnnRevision, "ns/other"), []string{own}, decide.Unproven, true},
		"another revision, no run on record": {unbound, annotated(contract.AnnRevision, "ns/other"), nil, decide.Fits, false},
		"it cannot be bound":                 {unbound, small, []string{own}, decide.Mismatched, true},
		"it could not be bound, and is":      {bound, small, []string{own}, decide.Fits, false},
		"no claimRef, its claim is unbound":  {unbound, unnamed, []string{own}, decide.Mismatched, true},
		"no claimRef, its claim is gone":     {nil, unnamed, nil, decide.Unproven, true},
		"no UID, its claim is unbound":       {unbound, unclaimed, nil, decide.Fits, false},
		"no UID, its claim is gone":          {nil, unclaimed, nil, decide.Fits, true},
		"it cannot be bound, and another revision": {
			unbound, func(pv *corev1.PersistentVolume) { small(pv); annotated(contract.AnnRevision, "ns/other")(pv) }, []string{own}, decide.Unproven, true,
		},
	} {
		pv, b := fixture.PV(t), &Observer{}
		b.Provisioner = pv.Annotations[contract.AnnProvisionedBy]
		tt.change(pv)
		if got, why := b.stateOf(pv, tt.claim, fixture.UID, tt.served); got != tt.want || (why != "") != tt.why {
			t.Errorf("%s: %d, %q, want %d", name, got, why, tt.want)
		}
	}
}

func TestWhoMayUseTheVolumeOfAPV(t *testing.T) {
	unbound, other := fixture.Claim(), fixture.Claim()
	other.Name = "other"
	for name, tt := range map[string]struct {
		phase    corev1.PersistentVolumePhase
		claim    *corev1.PersistentVolumeClaim
		orphaned bool
		want     decide.Use
	}{
		"bound":                             {corev1.VolumeBound, nil, false, decide.InUse},
		"bound, on an old phase":            {corev1.VolumeBound, nil, true, decide.InUse},
		"released":                          {corev1.VolumeReleased, nil, true, decide.Released},
		"failed":                            {corev1.VolumeFailed, nil, true, decide.Released},
		"released, and passed on":           {corev1.VolumeReleased, nil, false, decide.InUse},
		"available, its claim is unbound":   {corev1.VolumeAvailable, unbound, false, decide.NeverBound},
		"available, its claim is gone":      {corev1.VolumeAvailable, nil, false, decide.Unbound},
		"available, for another claim":      {corev1.VolumeAvailable, other, false, decide.Unbound},
		"without a phase, claim is unbound": {"", unbound, false, decide.NeverBound},
	} {
		pv := fixture.PV(t)
		pv.Status.Phase = tt.phase
		if got := useOf(pv, tt.claim, tt.orphaned); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
