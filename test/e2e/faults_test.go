//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// A volume type that Cinder does not know is refused in Cinder's words, tried once and not again
// and again, and tried again at once when the class is corrected.
func TestUnknownVolumeTypeIsRefusedUntilTheClassIsCorrected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "type")
	w.class(w.ns, parameter("type", "no-such-type"))
	w.config(ownNamespace, w.ns, cinderConfig(nil))
	claim := w.claim(w.ns, "data")
	w.failed(claim, 1, toBind)
	code := w.look(claim).Annotations["flex-provisioner.io/exit-code"]
	equal(t, "the exit code "+code+" is a refusal", code == "64" || code == "65" || code == "78", true)
	w.event(claim, "ProvisioningFailed", `"no-such-type"`, "could not be found", "exit code "+code)

	w.always(time.Minute, "there may be no more than one attempt", func(ctx context.Context) error {
		jobs, err := jobsOf(ctx, string(claim.UID), "")
		if err == nil && len(jobs) > 1 {
			err = fmt.Errorf("there are %v", names(jobs))
		}
		return err
	})

	w.deleteClass(w.ns)
	corrected := w.class(w.ns, parameter("type", "lvm"))
	w.bound(claim)
	w.onlyVolume(claim)
	jobs := w.jobs(claim, "provision")
	equal(t, "attempts", len(jobs), 2)
	if pause := jobs[len(jobs)-1].CreationTimestamp.Sub(corrected.CreationTimestamp.Time); pause > 5*time.Second {
		t.Errorf("the new attempt came %s after the class was corrected", pause)
	}
}

// Without Cinder the attempts fail with growing pauses, and the claim says so; with Cinder again
// the claim is bound to one volume. No other test runs meanwhile.
func TestCinderDownIsRetriedWithGrowingPauses(t *testing.T) {
	w := newWorld(t, "down")
	w.whenDone(func() { w.cinder("start") })
	w.cinder("stop")
	claim := w.claim(cinderClass, "data")
	const attempts = 4
	w.failed(claim, attempts, 2*time.Minute)
	now := w.look(claim)
	equal(t, "the claim's phase", now.Status.Phase, corev1.ClaimPending)
	equal(t, "the exit code", now.Annotations["flex-provisioner.io/exit-code"], "69")
	for _, pause := range []string{"1s", "2s", "4s", "8s"} {
		w.event(now, "ProvisioningFailed", `volume type "lvm"`, "the server does not answer", "next attempt in "+pause)
	}
	jobs := w.jobs(claim, "provision")
	for i := range min(attempts, len(jobs)) - 1 {
		least := time.Second << i
		if pause := jobs[i+1].CreationTimestamp.Sub(ended(jobs[i]).LastTransitionTime.Time); pause < least {
			t.Errorf("attempt %d came %s after the one before it, not %s or more", i+2, pause, least)
		}
	}

	w.cinder("start")
	w.bound(claim)
	w.onlyVolume(claim)
}

// All dispatchers are killed while a Job runs, and none is started: the Job ends and nothing is
// recorded. The next dispatcher records it, from what it finds, without a second run.
func TestDispatchersKilledBetweenLaunchAndRecordLoseNothing(t *testing.T) {
	w := newWorld(t, "killed")
	gate := w.newGate()
	claim := w.claim(w.cinderService(map[string]string{"pod-template": gate.template()}), "data")
	w.reached(gate)
	w.killDispatchers()
	gate.open()

	w.eventually(toBind, "the Job to complete without a dispatcher", func(ctx context.Context) error {
		jobs, err := jobsOf(ctx, string(claim.UID), "provision")
		if err != nil {
			return err
		}
		if c := ended(jobs[0]); c == nil || c.Type != batchv1.JobComplete {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	w.pv(claim)
	w.always(10*time.Second, "nothing may be recorded", func(ctx context.Context) error { return unrecorded(ctx, claim) })

	started := time.Now()
	w.scale(dispatcherNumber)
	w.eventually(30*time.Second, "the result to be recorded", func(ctx context.Context) error { return succeeded(ctx, claim) })
	t.Logf("recorded %.1f s after the dispatchers were started again", time.Since(started).Seconds())
	w.event(claim, "ProvisioningSucceeded")
	w.eventually(30*time.Second, "the record to be released", func(ctx context.Context) error {
		held, err := heldJobs(ctx, string(claim.UID))
		if err == nil && len(held) > 0 {
			err = fmt.Errorf("held: %v", held)
		}
		return err
	})
	w.onlyJob(claim, "provision")
	w.onlyVolume(claim)
}

// unrecorded reports an error if the claim or its Job has a result.
func unrecorded(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	now, err := lookClaim(ctx, claim)
	if err != nil {
		return err
	}
	if result, there := now.Annotations["flex-provisioner.io/result"]; there {
		return fmt.Errorf("the claim shows the result %q", result)
	}
	jobs, err := jobsOf(ctx, string(claim.UID), "")
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if outcome := recordOf(job, string(claim.UID)).Outcome; outcome != nil || released(job) {
			return fmt.Errorf("the Job %s has the outcome %s and the finalizers %v", job.Name, outcome, job.Finalizers)
		}
	}
	told, err := events(ctx, claim.Namespace, claim.UID)
	for _, e := range told {
		// kube-controller-manager emits the same reason where its cache does not show the class yet.
		if slices.Contains([]string{"ProvisioningSucceeded", "ProvisioningFailed"}, e.Reason) && e.ReportingController == "flex-provisioner.io" {
			return fmt.Errorf("there is the event %s", e.Reason)
		}
	}
	return err
}

// The leader is deleted, and a claim made at that moment is bound all the same.
func TestAnotherReplicaLeadsWhenTheLeaderIsKilled(t *testing.T) {
	w := newWorld(t, "leader")
	w.whenDone(w.startDispatchers)
	w.eventually(toBind, "both replicas to be ready", dispatchersReady)
	first, err := leader(w.ctx())
	w.must(err, "find the leader")
	w.deleteReplica(first)
	started := time.Now()
	claim := w.claim(cinderClass, "data")
	w.eventually(30*time.Second, "the claim to be bound under another leader", func(ctx context.Context) error { return succeeded(ctx, claim) })
	took := time.Since(started).Seconds()
	second, err := leader(w.ctx())
	w.must(err, "find the new leader")
	equal(t, "the leader "+first+" still leads", second == first, false)
	w.onlyVolume(claim)
	t.Logf("%s was deleted, %s leads; the claim was bound after %.1f s", first, second, took)
}
