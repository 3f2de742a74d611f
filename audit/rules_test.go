package audit_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

const uid = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50"

var (
	now  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	long = metav1.NewTime(now.Add(-time.Hour))
	soon = metav1.NewTime(now.Add(-time.Minute))
)

func podEnded(s *audit.State) { s.Pods[0].Status.Phase = corev1.PodSucceeded }

// podOnly is a pod that the dispatcher keeps, and no Job. gated is one that waits for its gate.
func podOnly(s *audit.State) { s.Pods[0].Finalizers, s.Jobs = []string{jobs.FinalizerRecord}, nil }

func gated(s *audit.State) {
	s.Pods[0].Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: jobs.GateConfirm}}
}

// healthy is a bound claim with its PV, Secret, volume and the Job that made it.
func healthy() audit.State {
	name := contract.PVName(uid)
	return audit.State{
		Now: now,
		Claims: []*corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "data", UID: uid, CreationTimestamp: long},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name},
		}},
		PVs: []*corev1.PersistentVolume{{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, CreationTimestamp: long, Finalizers: []string{contract.FinalizerStorage},
				Annotations: map[string]string{contract.AnnClaimUID: uid, contract.AnnSecret: "flex-provisioner/" + name, contract.AnnRevision: "flex-provisioner/gold-5d7c"},
			},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: "gold", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "data", UID: uid},
			},
		}},
		Jobs: []*batchv1.Job{{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "flex-provisioner", Name: "provision-" + uid + "-1", Annotations: map[string]string{jobs.AnnUIDs: uid},
			},
			Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: long}}},
		}},
		Pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{
			Namespace: "flex-provisioner", Name: "provision-" + uid + "-1-abcde", CreationTimestamp: long,
			Labels: map[string]string{contract.LabelClaimUID: uid, batchv1.JobNameLabel: "provision-" + uid + "-1"},
		}}},
		Secrets: []metav1.ObjectMeta{{
			Namespace: "flex-provisioner", Name: name, CreationTimestamp: long, Labels: map[string]string{contract.LabelClaimUID: uid},
		}},
		Volumes: map[string][]audit.Volume{"gold": {{UID: uid, Volume: "v1", Size: 1 << 30}}},
	}
}

// unserved is a change: Job and pod are in a namespace that is not known to be served.
func unserved(s *audit.State) {
	s.UnservedJobs, s.UnservedPods, s.Jobs, s.Pods = s.Jobs, s.Pods, nil, nil
	s.UnservedJobs[0].CreationTimestamp = long
}

// claimGone is a change: the claim does not exist any more, nor its PV.
func claimGone(s *audit.State) { s.Claims, s.PVs = nil, nil }

// held is a change: the Job is the claim's record.
func held(s *audit.State) { s.Jobs[0].Finalizers = []string{jobs.FinalizerRecord} }

// deletedAt is a change: the Job is being deleted, and had not finished before. No condition says
// so then.
func deletedAt(at metav1.Time) func(*audit.State) {
	return func(s *audit.State) { s.Jobs[0].Status.Conditions, s.Jobs[0].DeletionTimestamp = nil, &at }
}

func TestFindings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		changes []func(*audit.State)
		want    []audit.Kind
	}{
		"a bound claim": {},
		"its Secret does not exist": {
			changes: []func(*audit.State){func(s *audit.State) { s.Secrets = nil }},
			want:    []audit.Kind{audit.SecretMissing},
		},
		"its Secret does not exist yet": {
			changes: []func(*audit.State){func(s *audit.State) { s.Secrets, s.PVs[0].CreationTimestamp = nil, soon }},
		},
		"its PV does not exist any more, and the PV of another claim names its Secret": {
			changes: []func(*audit.State){func(s *audit.State) {
				s.Claims, s.Jobs, s.Pods, s.PVs[0].Name, s.Volumes = nil, nil, nil, "pvc-other", nil
				s.PVs[0].Annotations[contract.AnnClaimUID], s.PVs[0].Spec.ClaimRef.UID = "other", "other"
			}},
			want: []audit.Kind{audit.SecretLeft},
		},
		"a PV of another dispatcher names it": {
			changes: []func(*audit.State){func(s *audit.State) {
				s.Claims, s.Jobs, s.Pods, s.Volumes, s.PVs, s.Others = nil, nil, nil, nil, nil, s.PVs
			}},
		},
		"its PV does not exist any more, and a PV without a claim names its Secret": {
			changes: []func(*audit.State){func(s *audit.State) {
				s.Claims, s.Jobs, s.Pods, s.PVs[0].Name, s.Volumes = nil, nil, nil, "by-hand", nil
				delete(s.PVs[0].Annotations, contract.AnnClaimUID)
			}},
		},
		"its PV does not exist any more": {
			changes: []func(*audit.State){func(s *audit.State) { s.PVs, s.Claims[0].Status.Phase = nil, corev1.ClaimLost }},
			want:    []audit.Kind{audit.ClaimLost},
		},
		"its PV is being deleted for long": {
			changes: []func(*audit.State){func(s *audit.State) { s.PVs[0].DeletionTimestamp = &long }},
		},
		"the claim does not exist any more, and its PV is being deleted for long": {
			changes: []func(*audit.State){func(s *audit.State) { s.Claims, s.PVs[0].DeletionTimestamp = nil, &long }},
			want:    []audit.Kind{audit.PVTerminating},
		},
		"the claim does not exist any more, and its PV is being deleted": {
			changes: []func(*audit.State){func(s *audit.State) { s.Claims, s.PVs[0].DeletionTimestamp = nil, &soon }},
		},
		"its volume is not in the storage": {
			changes: []func(*audit.State){func(s *audit.State) { s.Volumes["gold"] = nil }},
			want:    []audit.Kind{audit.VolumeMissing},
		},
		"the storage was not listed": {
			changes: []func(*audit.State){func(s *audit.State) { s.Volumes = nil }},
		},
		"it has two volumes": {
			changes: []func(*audit.State){func(s *audit.State) {
				s.Volumes["gold"] = append(s.Volumes["gold"], audit.Volume{UID: uid, Volume: "v2"})
			}},
			want: []audit.Kind{audit.VolumeTwice, audit.VolumeTwice},
		},
		"its record is held": {
			changes: []func(*audit.State){held},
			want:    []audit.Kind{audit.RecordHeld},
		},
		"its record was written a moment ago": {
			changes: []func(*audit.State){held, func(s *audit.State) { s.Jobs[0].Status.Conditions[0].LastTransitionTime = soon }},
		},
		"the claim waits for another attempt": {
			changes: []func(*audit.State){held, func(s *audit.State) { s.Claims[0].Spec.VolumeName, s.PVs = "", nil }},
		},
		"claim and PV do not exist any more": {
			changes: []func(*audit.State){claimGone, podEnded},
			want:    []audit.Kind{audit.SecretLeft, audit.VolumeLeft},
		},
		"claim and PV do not exist any more, and the pod of a run is at work": {
			changes: []func(*audit.State){claimGone},
		},
		"claim and PV do not exist any more, and the record is held": {
			changes: []func(*audit.State){claimGone, held},
			want:    []audit.Kind{audit.RecordHeld},
		},
		"claim and PV do not exist any more, and a run is at work": {
			changes: []func(*audit.State){claimGone, func(s *audit.State) { s.Jobs[0].Status.Conditions = nil }},
		},
		"a run that had not finished is being deleted for long, and the record is held": {
			changes: []func(*audit.State){claimGone, held, deletedAt(long)},
			want:    []audit.Kind{audit.RecordHeld},
		},
		"a run that had not finished is being deleted, and the record is held": {
			changes: []func(*audit.State){claimGone, held, deletedAt(soon)},
		},
		"a run that had not finished is being deleted for long": {
			changes: []func(*audit.State){claimGone, podEnded, deletedAt(long)},
			want:    []audit.Kind{audit.SecretLeft, audit.VolumeLeft},
		},
		"a run that had not finished is being deleted": {
			changes: []func(*audit.State){claimGone, deletedAt(soon)},
		},
		"the pod is kept although its run is on record": {
			changes: []func(*audit.State){func(s *audit.State) { s.Pods[0].Finalizers = []string{jobs.FinalizerRecord} }},
			want:    []audit.Kind{audit.PodHeld},
		},
		"the pod is kept and its Job does not exist any more": {
			changes: []func(*audit.State){podOnly, podEnded},
			want:    []audit.Kind{audit.PodHeld},
		},
		"the pod is at work and its Job does not exist any more": {
			changes: []func(*audit.State){podOnly},
		},
		"the pod waits for its gate and its Job does not exist any more": {
			changes: []func(*audit.State){podOnly, gated},
			want:    []audit.Kind{audit.PodHeld},
		},
		"Job and pod are in a namespace that is not served": {
			changes: []func(*audit.State){held, unserved},
			want:    []audit.Kind{audit.JobUnserved, audit.PodUnserved},
		},
		"they are new": {
			changes: []func(*audit.State){unserved, func(s *audit.State) {
				s.UnservedJobs[0].CreationTimestamp, s.UnservedPods[0].CreationTimestamp = soon, soon
			}},
		},
		"they stand for no volume": {
			changes: []func(*audit.State){claimGone, held, unserved},
			want:    []audit.Kind{audit.JobUnserved, audit.PodUnserved, audit.SecretLeft, audit.VolumeLeft},
		},
		"the pod waits for its gate and has a Job that is not seen yet": {
			changes: []func(*audit.State){podOnly, gated, func(s *audit.State) {
				s.Pods[0].OwnerReferences = []metav1.OwnerReference{{Kind: "Job", UID: "job", Controller: new(true)}}
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := healthy()
			for _, change := range test.changes {
				change(&s)
			}
			var kinds []audit.Kind
			for _, f := range audit.Check(s) {
				kinds = append(kinds, f.Kind)
				if f.Object == "" || f.Why == "" || f.Fix == "" {
					t.Errorf("the finding lacks something: %+v", f)
				}
			}
			if !slices.Equal(kinds, test.want) {
				t.Errorf("found %v, want %v", kinds, test.want)
			}
		})
	}
}

// The finalizer of the Job controller has to stay: by it the pod is counted.
func TestAHeldPodIsReleasedFromTheDispatchersFinalizerOnly(t *testing.T) {
	t.Parallel()
	s := healthy()
	s.Pods[0].Finalizers = []string{batchv1.JobTrackingFinalizer, jobs.FinalizerRecord}
	found := audit.Check(s)
	if len(found) != 1 || found[0].Kind != audit.PodHeld {
		t.Fatalf("found %+v", found)
	}
	want := "kubectl patch pod " + s.Pods[0].Name + ` -n flex-provisioner --type=json -p '[{"op":"test","path":"/metadata/finalizers/1","value":"` + jobs.FinalizerRecord +
		`"},{"op":"remove","path":"/metadata/finalizers/1"}]'`
	if found[0].Fix != want {
		t.Errorf("fixed by\n%s, want\n%s", found[0].Fix, want)
	}
}

// Without its finalizer a pod that waits for its gate would stay all the same, and hold its slot.
func TestAGatedPodWithoutAJobIsFixedByItsDeletion(t *testing.T) {
	t.Parallel()
	s := healthy()
	podOnly(&s)
	gated(&s)
	if found := audit.Check(s); len(found) != 1 || found[0].Fix != "kubectl -n flex-provisioner delete pod "+s.Pods[0].Name {
		t.Errorf("found %+v", found)
	}
}

// Whoever may create claims may name any PV in spec.volumeName. Kubernetes binds no claim by that, and
// it once hid what an audit has to say of the PV.
func TestAClaimThatNamesAPVHidesNothingOfIt(t *testing.T) {
	t.Parallel()
	name := contract.PVName(uid)
	tenants := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "mine", UID: "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f51", CreationTimestamp: long},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	terminating, lost := healthy(), healthy()
	terminating.Claims, terminating.PVs[0].DeletionTimestamp = []*corev1.PersistentVolumeClaim{tenants}, &long
	lost.Claims[0].Status.Phase, lost.PVs = corev1.ClaimLost, nil
	lost.Claims = append(lost.Claims, tenants)
	for want, s := range map[audit.Kind]audit.State{audit.PVTerminating: terminating, audit.ClaimLost: lost} {
		if found := audit.Check(s); len(found) != 1 || found[0].Kind != want || found[0].UID != uid {
			t.Errorf("found %+v, want %s", found, want)
		}
	}
	unbound := healthy()
	unbound.PVs[0].DeletionTimestamp, unbound.PVs[0].Spec.ClaimRef = &long, nil
	if found := audit.Check(unbound); len(found) != 1 || found[0].Kind != audit.PVTerminating {
		t.Errorf("of a PV that names no claim: %+v", found)
	}
}

// An annotation that names no Secret is quoted, and is no flag of a command.
func TestAnAnnotationThatNamesNoSecretIsNoFlagOfACommand(t *testing.T) {
	t.Parallel()
	for value, fix := range map[string]string{
		"flex-provisioner/own":              "kubectl create secret generic own -n flex-provisioner …",
		"tenant/own":                        "let the annotation " + contract.AnnSecret + " name a Secret",
		"flex-provisioner/--all=x":          "let the annotation " + contract.AnnSecret + " name a Secret",
		"--all/own":                         "let the annotation " + contract.AnnSecret + " name a Secret",
		"ns/x; touch PWNED #\n\x1b[31mVIEW": "let the annotation " + contract.AnnSecret + " name a Secret",
	} {
		s := healthy()
		s.PVs[0].Annotations[contract.AnnSecret] = value
		found := audit.Check(s)
		if len(found) != 1 || found[0].Kind != audit.SecretMissing || !strings.HasPrefix(found[0].Fix, fix) || strings.ContainsFunc(found[0].Why, unicode.IsControl) {
			t.Errorf("%q: found %+v, want the fix %s", value, found, fix)
		}
	}
}
