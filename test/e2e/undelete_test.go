//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A claim is deleted by mistake. A new one has its volume and its data, with the dispatchers killed
// before and after the undelete. Nothing deletes the volume until an administrator empties the
// trash. No other test runs meanwhile.
func TestADeletedClaimIsBackWithItsData(t *testing.T) {
	for name, storage := range map[string]keeping{
		"directory": directories,
		"cinder": {
			namespace: ownNamespace, again: "node2", some: "1 volumes", none: "0 volumes",
			setUp: func(w *world) { w.cinderService(map[string]string{"keep-deleted": "168h"}) },
			has: func(w *world, claim *corev1.PersistentVolumeClaim) string {
				found, err := volumesOf(w.ctx(), string(claim.UID))
				w.must(err, "look at Cinder's volumes")
				return fmt.Sprint(len(found), " volumes")
			},
		},
	} {
		t.Run(name, func(t *testing.T) { undeletes(t, "undelete-"+name, storage) })
	}
}

// keeping is a storage that keeps volumes for a week after their claims.
type keeping struct {
	namespace string       // of its config
	again     string       // the node where a pod reads what one on node1 has written
	setUp     func(*world) // makes a class and its config, of the name of the test's namespace
	// has is what the storage has of a claim: some, while its volume exists, and none.
	has        func(*world, *corev1.PersistentVolumeClaim) string
	some, none string
}

var directories = keeping{
	namespace: nodeNamespace, again: "node1", some: "[node1]", none: "[]",
	setUp: func(w *world) { w.keepsDirectories(map[string]string{"keep-deleted": "168h"}) },
	has:   (*world).holders,
}

// keepsDirectories makes a class as node-directory, with further keys of its config.
func (w *world) keepsDirectories(keys map[string]string) {
	w.t.Helper()
	w.class(w.ns, firstConsumer, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.copyOf(w.exampleConfig(directoryClass, directoryClass), func(data map[string]string) { maps.Copy(data, keys) })
}

// undeletes deletes a claim of a storage, and gives its volume to another.
func undeletes(t *testing.T, name string, storage keeping) {
	t.Helper()
	w := newWorld(t, name)
	admin, deleted, restored := os.Getenv("KUBECONFIG"), w.ns+"/data", w.ns+"/restored"
	storage.setUp(w)
	w.keepsNothingInTheEnd(storage.namespace)
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
	equal(t, "what the storage has of the deleted claim", storage.has(w, claim), storage.some)
	said := w.succeeds(admin, "trash", deleted)
	for _, part := range []string{pv.Name, deleted, w.ns, "1Gi", until} {
		contains(t, "the trash", said, part)
	}
	said, code := w.flex(admin, "why", "data", "--namespace="+w.ns)
	equal(t, "the deleted claim does not exist: "+said, code != 0, true)
	contains(t, "why", said, "kubectl flex undelete "+deleted)
	said, code = w.flex(admin, "undelete", deleted, "--to="+w.ns+"/taken")
	equal(t, "a claim that exists is refused: "+said, code != 0, true)
	contains(t, "the refusal", said, "the claim "+w.ns+"/taken exists")

	var back *corev1.PersistentVolumeClaim
	w.withoutDispatchers(func() {
		contains(t, "undelete", w.succeeds(admin, "undelete", deleted, "--to="+restored), restored)
		back = w.claimOfVolume("restored", pv.Name)
	})
	w.withoutDispatchers(func() {
		equal(t, "the file", w.read(back, storage.again, "cat /data/file"), "kept\n")
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
	equal(t, "what the storage has before the trash is emptied", storage.has(w, claim), storage.some)
	w.withoutDispatchers(func() {
		contains(t, "the trash", w.succeeds(admin, "trash", restored, "--empty"), pv.Name)
	})
	w.vanished(claim)
	equal(t, "what the storage has of an emptied trash", storage.has(w, claim), storage.none)
	w.event(pv, "Deleting", "an administrator has emptied the trash")
}

// What a namespace keeps is limited: the oldest volume is deleted before its time, and one that is
// larger than the limit at once.
func TestTheTrashOfANamespaceIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "trash-limit")
	w.keepsDirectories(map[string]string{"keep-deleted": "168h", "keep-deleted-limit": "2Gi"})
	w.keepsNothingInTheEnd(nodeNamespace)
	var claims []*corev1.PersistentVolumeClaim
	var pvs []*corev1.PersistentVolume
	for n, size := range []string{"1Gi", "1Gi", "1Gi", "3Gi"} {
		claim := w.claim(w.ns, fmt.Sprint("data-", n), func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
		})
		w.read(claim, "node1", "echo kept >/data/file")
		claims, pvs = append(claims, claim), append(pvs, w.bound(claim))
	}
	time.Sleep(time.Minute) // what was bound for less goes first
	for i := range 3 {
		w.deleteClaim(claims[i])
		w.claimGone(claims[i])
		if i < 2 { // two that are released in the same second are ordered by their UIDs
			until := w.keptUntil(pvs[i].Name)
			w.event(pvs[i], "VolumeKept", "kept until "+until, "keep-deleted-limit: 2Gi")
			time.Sleep(2 * time.Second)
		}
	}
	w.vanished(claims[0])
	w.event(pvs[0], "Deleting", "before the time of keep-deleted", "the namespace "+w.ns, "exceed keep-deleted-limit: 2Gi")
	w.deleteClaim(claims[3])
	w.vanished(claims[3])
	w.event(pvs[3], "Deleting", "exceed keep-deleted-limit: 2Gi")
	for _, kept := range claims[1:3] {
		w.always(2*time.Second, "no delete may run", func(ctx context.Context) error { return noDelete(ctx, kept) })
		equal(t, "nodes with the directory of "+kept.Name, w.holders(kept), "[node1]")
	}
}

// kubectl replace --force deletes a ConfigMap, and creates it again. The volume is older than the
// key.
func TestAVolumeIsKeptWhileItsConfigIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "trash-replaced")
	w.keepsDirectories(nil)
	w.keepsNothingInTheEnd(nodeNamespace)
	claim := w.claim(w.ns, "data")
	w.read(claim, "node1", "echo kept >/data/file")
	pv := w.bound(claim)
	configs, week := kube.CoreV1().ConfigMaps(nodeNamespace), []byte(`{"data": {"keep-deleted": "168h"}}`)
	cm, err := configs.Patch(w.ctx(), w.ns, types.MergePatchType, week, metav1.PatchOptions{})
	w.must(err, "edit the config")
	w.eventually(toBind, "its revision to say how long volumes are kept", func(ctx context.Context) error {
		namespace, name, _ := strings.Cut(pv.Annotations["flex-provisioner.io/config-revision"], "/")
		revision, err := kube.AppsV1().ControllerRevisions(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil && revision.Annotations["flex-provisioner.io/trash"] != `{"keep-deleted":"168h0m0s"}` {
			err = fmt.Errorf("its annotations are %v", revision.Annotations)
		}
		return err
	})
	w.must(configs.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "delete the config")
	w.deleteClaim(claim)
	w.claimGone(claim)
	w.event(pv, "VolumeKept", "kept until "+w.keptUntil(pv.Name))
	w.always(5*time.Second, "no delete may run", func(ctx context.Context) error { return noDelete(ctx, claim) })
	again := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: cm.Name, Labels: cm.Labels}, Data: cm.Data}
	delete(again.Data, "keep-deleted")
	_, err = configs.Create(w.ctx(), again, metav1.CreateOptions{})
	w.must(err, "create the config again")
	w.vanished(claim)
}

// keepsNothingInTheEnd lets a test that has failed leave no volume that is kept.
func (w *world) keepsNothingInTheEnd(namespace string) {
	w.whenDone(func() {
		configs, now := kube.CoreV1().ConfigMaps(namespace), []byte(`{"data": {"keep-deleted": "0"}}`)
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
