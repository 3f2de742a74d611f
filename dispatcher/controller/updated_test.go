package controller

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

func TestAnOldStateIsPassedOnOnlyIfItMoved(t *testing.T) {
	for moved, want := range map[bool][]string{true: {"old", "now"}, false: {"now"}} {
		var got []string
		passOn(func(state string) { got = append(got, state) }, "old", "now", moved)
		if !slices.Equal(got, want) {
			t.Errorf("moved %t: %v, want %v", moved, got, want)
		}
	}
}

func TestWhatConcernsOtherUIDsHasMoved(t *testing.T) {
	claim, bound := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{}
	bound.Spec.VolumeName = "pv"
	again := claim.DeepCopy()
	again.UID = "u2"
	pv, ready, marked, claimed := &corev1.PersistentVolume{}, &corev1.PersistentVolume{}, &corev1.PersistentVolume{}, &corev1.PersistentVolume{}
	ready.Status.Phase = corev1.VolumeBound
	marked.Annotations = map[string]string{"a": "b"}
	claimed.Spec.ClaimRef = &corev1.ObjectReference{UID: "u1"}
	job, ended, other := &batchv1.Job{}, &batchv1.Job{}, &batchv1.Job{}
	ended.Status.Succeeded = 1
	other.Annotations = map[string]string{jobs.AnnUIDs: "u2"}
	revision, noted, renumbered := &appsv1.ControllerRevision{}, &appsv1.ControllerRevision{}, &appsv1.ControllerRevision{Revision: 2}
	noted.ResourceVersion, noted.Annotations = "2", map[string]string{config.AnnTrash: "{}"}
	for name, test := range map[string]struct{ got, want bool }{
		"a claim as it was":     {hasClaimMoved(claim, claim.DeepCopy()), false},
		"a claim with a volume": {hasClaimMoved(claim, bound), true},
		"a claim of its name":   {hasClaimMoved(claim, again), true},
		"the phase of a PV":     {hasPVMoved(pv, ready), false},
		"a PV's annotations":    {hasPVMoved(marked, pv), true},
		"a PV's claimRef":       {hasPVMoved(pv, claimed), true},
		"the status of a Job":   {hasJobMoved(job, ended), false},
		"the claims of a Job":   {hasJobMoved(job, other), true},
		"a revision's note":     {hasRevisionMoved(revision, noted), false},
		"a revision's number":   {hasRevisionMoved(revision, renumbered), true},
	} {
		if test.got != test.want {
			t.Errorf("%s: moved %t", name, test.got)
		}
	}
}
