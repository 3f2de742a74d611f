//go:build e2e && everyday

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pvIs waits until the claim's PV has a phase.
func (w *world) pvIs(claim *corev1.PersistentVolumeClaim, want corev1.PersistentVolumePhase) {
	w.t.Helper()
	w.eventually(toBind, "the PV to be "+string(want), func(ctx context.Context) error { return pvPhase(ctx, claim, want) })
}

// released makes a claim of a class whose policy is Retain, deletes it, and returns it with its PV.
func (w *world) released(class string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	w.t.Helper()
	claim := w.claim(class, "data")
	pv := w.bound(claim)
	w.deleteClaim(claim)
	w.claimGone(claim)
	w.pvIs(claim, corev1.VolumeReleased)
	return claim, pv
}

// A retained volume is deleted once an administrator sets the policy of its PV to Delete, if that is
// released, or has failed. The volume of one that was made available stays when the PV is deleted:
// Kubernetes reclaims only what a claim has released.
func TestARetainedVolumeIsDeletedOnceItsPolicyIsDelete(t *testing.T) {
	t.Parallel()
	t.Run("released", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "policy")
		class, _ := w.service(scripted(deletes+offer, nil), retain)
		claim, pv := w.released(class)
		w.always(5*time.Second, "no delete may run", func(ctx context.Context) error { return noDelete(ctx, claim) })
		w.patchPV(pv.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		w.vanished(claim)
		equal(t, "deletes", len(w.jobs(claim, "delete")), 1)
	})
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "failed")
		class, _ := w.service(scripted(deletes+offer, nil), retain)
		claim, pv := w.released(class)
		_, err := kube.CoreV1().PersistentVolumes().Patch(w.ctx(), pv.Name, types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
		w.must(err, "let the PV fail")
		w.patchPV(pv.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		w.vanished(claim)
		equal(t, "deletes", len(w.jobs(claim, "delete")), 1)
	})
	t.Run("available", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "available")
		class, _ := w.service(scripted(deletes+offer, nil), retain)
		claim, pv := w.released(class)
		w.patchPV(pv.Name, `{"spec":{"claimRef":null}}`)
		w.pvIs(claim, corev1.VolumeAvailable)
		w.patchPV(pv.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
		w.must(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv.Name, metav1.DeleteOptions{}), "delete the PV")
		w.vanished(claim)
		equal(t, "deletes", len(w.jobs(claim, "delete")), 0)
	})
}

// A PV is handed over from the claim for which it was made to another one, as by a populator, by a
// restore, or by hand. Its volume lives as long as the claim that has it, and no longer.
func TestAVolumeThatAnotherClaimTookOverIsDeletedAfterThat(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]bool{"populator": false, "restore": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "over-"+name)
			class, _ := w.service(scripted(deletes+offer, nil))
			prime := w.claim(class, "prime")
			pv := w.bound(prime)
			var target *corev1.PersistentVolumeClaim
			if restored {
				w.patchPV(pv.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
				w.deleteClaim(prime)
				w.claimGone(prime)
				target = w.claim(class, "target", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = pv.Name })
				w.patchPV(pv.Name, `{"spec":{"claimRef":{"uid":null,"resourceVersion":null,"name":"target"}}}`)
			} else {
				target = w.claim(class, "target", ofSource("populator.example", "Backup"))
				w.patchPV(pv.Name, fmt.Sprintf(`{"spec":{"claimRef":{"name":"target","uid":%q,"resourceVersion":%q}}}`, target.UID, target.ResourceVersion))
			}
			w.eventually(toBind, "the other claim to be bound", func(ctx context.Context) error { return isBound(ctx, target) })
			if restored {
				w.patchPV(pv.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
			} else {
				w.deleteClaim(prime)
				w.claimGone(prime)
			}
			w.always(8*time.Second, "no delete may run", func(ctx context.Context) error { return noDelete(ctx, prime) })
			w.deleteClaim(target)
			w.vanished(prime)
			equal(t, "deletes", len(w.jobs(prime, "delete")), 1)
		})
	}
}

// What a delete needs was removed after the volume was made: the Secret with the login, or the
// ServiceAccount. The PV says what is missing, and the volume is deleted when it is there again.
func TestAPVSaysWhatItsDeleteLacks(t *testing.T) {
	t.Parallel()
	t.Run("secret", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "secret")
		w.secret(w.ns, corev1.SecretTypeOpaque, "LOGIN", "tom")
		class, _ := w.service(scripted(deletes+offer, map[string]string{"env-from-secret": w.ns}))
		claim := w.claim(class, "data")
		pv := w.bound(claim)
		w.must(kube.CoreV1().Secrets(ownNamespace).Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "delete the Secret")
		w.deleteClaim(claim)
		w.event(pv, "CreateContainerConfigError", w.ns, "not found")
		_, err := kube.CoreV1().Secrets(ownNamespace).Create(w.ctx(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}, metav1.CreateOptions{})
		w.must(err, "create the Secret again")
		w.vanished(claim)
	})
	t.Run("account", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "account")
		accounts := kube.CoreV1().ServiceAccounts(ownNamespace)
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: w.ns, Labels: map[string]string{"flex-provisioner.io/provisioner": "true"}}}
		_, err := accounts.Create(w.ctx(), account, metav1.CreateOptions{})
		w.must(err, "create the ServiceAccount")
		w.remove(func() { w.gone(accounts.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "the ServiceAccount") })
		class, _ := w.service(scripted(deletes+offer, map[string]string{"service-account-name": w.ns}))
		claim := w.claim(class, "data")
		pv := w.bound(claim)
		w.must(accounts.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "delete the ServiceAccount")
		time.Sleep(2 * time.Second) // the dispatchers' caches
		w.deleteClaim(claim)
		w.event(pv, "ServiceAccountRefused", w.ns, "does not exist")
		_, err = accounts.Create(w.ctx(), account, metav1.CreateOptions{})
		w.must(err, "create the ServiceAccount again")
		w.vanished(claim)
	})
}

// The image that made a volume no longer exists in the registry. The delete runs with the image that
// the ConfigMap names now, since all else is the same.
func TestAVolumeWhoseImageNoLongerExistsIsDeletedByThePresentOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "old-image")
	good := scripted(deletes+offer, map[string]string{"timeout": "5s", "image-pull-policy": "Never"})
	class, cm := w.service(good)
	claim := w.claim(class, "data")
	pv := w.bound(claim)
	old := scripted(deletes+offer, map[string]string{"timeout": "5s", "image-pull-policy": "Never", "image": "localhost/withdrawn:1"})
	w.edit(cm, old)
	other := w.claim(class, "other") // with it the revision is stored
	w.event(other, "ErrImageNeverPull", "localhost/withdrawn:1")
	revision := w.onlyJob(other, "provision").Annotations["flex-provisioner.io/config-revision"]
	w.patchPV(pv.Name, fmt.Sprintf(`{"metadata":{"annotations":{"flex-provisioner.io/config-revision":%q}}}`, revision))
	w.edit(cm, good)
	w.bound(other)
	w.deleteClaim(claim)
	w.event(pv, "ErrImageNeverPull", "localhost/withdrawn:1")
	w.eventually(5*time.Minute, "the volume to be deleted", func(ctx context.Context) error { return nothingLeft(ctx, claim) })
}

// A script calls a program that its image does not have, also to undo what it may have made. The
// corrected script undoes that, and the claim is bound.
func TestACorrectedScriptUndoesWhatTheBrokenOneCannot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "tool")
	class, cm := w.service(scripted("size=$(jq -r .requests[0].size /etc/flex/request.json)\n"+deletes+offer, nil))
	claim := w.claim(class, "data")
	w.failed(claim, 1, toBind)
	equal(t, "the exit code", w.look(claim).Annotations["flex-provisioner.io/exit-code"], "127")
	w.edit(cm, scripted(deletes+offer, nil))
	w.bound(claim)
}

// The directory of a bound claim vanishes from its node, as when a node was created anew under its
// name. The next pod does not start, rather than with an empty directory, and the claim can go.
func TestAVolumeThatVanishedIsNotReplacedByAnEmptyOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "vanished")
	claim := w.claim(directoryClass, "data")
	w.pod(shell("writer", "node1", "echo first >/data/file", claim))
	w.output("writer")
	_, err := onNode(w.ctx(), "1", "rm", "-rf", volumesFolder+"/pvc-"+string(claim.UID))
	w.must(err, "remove the directory")
	w.deletePods("writer")
	w.pod(shell("reader", "node1", "ls /data", claim))
	w.eventually(toBind, "the pod to say that its volume is missing", func(ctx context.Context) error {
		pod, err := kube.CoreV1().Pods(w.ns).Get(ctx, "reader", metav1.GetOptions{})
		if err != nil {
			return err
		}
		notes, err := notesOf(ctx, pod, "FailedMount")
		if err == nil && len(notes) == 0 {
			err = errors.New("there is no event FailedMount; its phase is " + string(pod.Status.Phase))
		}
		return err
	})
	w.deletePods("reader")
	w.deleteClaim(claim)
	w.vanished(claim)
}
