//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A claim is deleted by mistake. A new one has its volume and its data, with the dispatchers killed
// before and after the undelete. Nothing deletes the volume until an administrator empties the
// trash. No other test runs meanwhile.
func TestADeletedClaimIsBackWithItsData(t *testing.T) {
	w := newWorld(t, "undelete")
	admin, deleted, restored := os.Getenv("KUBECONFIG"), w.ns+"/data", w.ns+"/restored"
	w.keepsDeletedDirectories()
	claim := w.claim(w.ns, "data")
	w.read(claim, "node1", "echo kept >/data/file; sync")
	pv := w.bound(claim)
	w.claim(w.ns, "taken")

	w.deleteClaim(claim)
	w.claimGone(claim)
	until := w.keptUntil(pv.Name)
	w.event(pv, "VolumeKept", "the claim "+deleted+" was deleted", "kept until "+until)
	isKept := func(ctx context.Context) error { return noDelete(ctx, claim) }
	w.always(5*time.Second, "no delete may run", isKept)
	equal(t, "nodes with the directory of the deleted claim", w.holders(claim), "[node1]")
	said := w.succeeds(admin, "trash", deleted)
	for _, part := range []string{pv.Name, deleted, w.ns, "1Gi", until} {
		contains(t, "the trash", said, part)
	}
	said, code := w.flex(admin, "undelete", deleted, "--to="+w.ns+"/taken")
	equal(t, "a claim that exists is refused: "+said, code != 0, true)
	contains(t, "the refusal", said, "the claim "+w.ns+"/taken exists")

	var back *corev1.PersistentVolumeClaim
	w.withoutDispatchers(func() {
		contains(t, "undelete", w.succeeds(admin, "undelete", deleted, "--to="+restored), restored)
		back = w.claimOfVolume("restored", pv.Name)
	})
	w.withoutDispatchers(func() {
		equal(t, "the file", w.read(back, "node1", "cat /data/file"), "kept\n")
	})
	w.always(3*time.Second, "no delete may run", isKept)
	w.must(isBound(w.ctx(), back), "look at the new claim")
	equal(t, "Jobs for the new claim", len(w.jobs(back, "")), 0)
	said, code = w.flex(admin, "trash", pv.Name)
	equal(t, "the trash has no volume that is in use: "+said, code != 0, true)
	contains(t, "the trash", said, "waits for its delete")

	w.deleteClaim(back)
	w.claimGone(back)
	w.event(pv, "VolumeKept", "the claim "+restored+" was deleted", "kept until "+w.keptUntil(pv.Name))
	equal(t, "nodes with the directory before the trash is emptied", w.holders(claim), "[node1]")
	contains(t, "the trash", w.succeeds(admin, "trash", restored, "--empty"), pv.Name)
	w.vanished(claim)
	equal(t, "nodes with the directory of an emptied trash", w.holders(claim), "[]")
	w.event(pv, "Deleting", "an administrator has emptied the trash")
}

// keepsDeletedDirectories makes a class as node-directory, whose volumes are kept for a week after
// their claims. A test that has failed keeps none.
func (w *world) keepsDeletedDirectories() {
	w.t.Helper()
	w.class(w.ns, firstConsumer, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.copyOf(w.exampleConfig(directoryClass, directoryClass), func(data map[string]string) {
		data["keep-deleted"] = "168h"
	})
	w.whenDone(func() {
		configs, now := kube.CoreV1().ConfigMaps(nodeNamespace), []byte(`{"data": {"keep-deleted": "0"}}`)
		_, err := configs.Patch(w.ctx(), w.ns, types.MergePatchType, now, metav1.PatchOptions{})
		w.must(err, "edit the config")
	})
}

// keptUntil waits until a PV is Released, and returns when it will have been so for a week.
func (w *world) keptUntil(pv string) string {
	w.t.Helper()
	var since time.Time
	w.eventually(toBind, "the PV "+pv+" to be Released", func(ctx context.Context) error {
		now, err := kube.CoreV1().PersistentVolumes().Get(ctx, pv, metav1.GetOptions{})
		if err != nil {
			return err
		}
		at := now.Status.LastPhaseTransitionTime
		if now.Status.Phase != corev1.VolumeReleased || at == nil {
			return fmt.Errorf("its phase is %s since %v", now.Status.Phase, at)
		}
		since = at.Time
		return nil
	})
	return since.Add(168 * time.Hour).UTC().Format(time.RFC3339)
}

// succeeds runs a command of the plugin that must succeed, and returns what it prints.
func (w *world) succeeds(kubeconfig string, args ...string) string {
	w.t.Helper()
	said, code := w.flex(kubeconfig, args...)
	if code != 0 {
		w.t.Fatalf("kubectl flex %v: exit code %d: %s", args, code, said)
	}
	return said
}

// withoutDispatchers kills every dispatcher, does something, and waits until another leads.
func (w *world) withoutDispatchers(do func()) {
	w.t.Helper()
	before, err := leader(w.ctx())
	w.must(err, "find the leader")
	w.killDispatchers()
	do()
	w.startDispatchers()
	w.eventually(30*time.Second, "another dispatcher to lead", func(ctx context.Context) error {
		now, err := leader(ctx)
		if err == nil && now == before {
			err = fmt.Errorf("the lease is that of %s, which was killed", now)
		}
		return err
	})
}

// claimOfVolume waits until a claim that was not made here is bound to a PV, and returns it.
func (w *world) claimOfVolume(name, pv string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	var claim *corev1.PersistentVolumeClaim
	what := "the claim " + name + " to be bound to " + pv
	w.eventually(toBind, what, func(ctx context.Context) (err error) {
		claim, err = kube.CoreV1().PersistentVolumeClaims(w.ns).Get(ctx, name, metav1.GetOptions{})
		if err == nil && (claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != pv) {
			err = fmt.Errorf("its phase is %s, its volume %q", claim.Status.Phase, claim.Spec.VolumeName)
		}
		return err
	})
	return claim
}
