//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sharedConfig makes a ConfigMap that serves the classes that name it, if it lists them.
func (w *world) sharedConfig(name, classes string) *corev1.ConfigMap {
	w.t.Helper()
	return w.configMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ownNamespace, Labels: map[string]string{"type": "provisioner-config"}},
		Data:       scripted(deletes+strings.ReplaceAll(offer, "/exports/", "/'$FLEX_TIER'/"), map[string]string{"classes": classes}),
	})
}

// One ConfigMap serves each class that it lists and that names it, also one whose name no label can
// have.
func TestOneConfigServesTheClassesThatItLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "shared")
	long := w.ns + "-" + strings.Repeat("x", 63)
	naming := "flex-provisioner.io/config"
	w.class(w.ns, parameter(naming, w.ns), parameter("tier", "short"))
	w.class(long, parameter(naming, w.ns), parameter("tier", "long"))
	w.class(w.ns+"-unlisted", parameter(naming, w.ns))
	unlabelled := w.ns + "-without-" + strings.Repeat("x", 63)
	w.class(unlabelled)
	early := w.claim(w.ns, "early")
	w.event(early, "WaitingForConfig", "names the ConfigMap "+w.ns, "namespace "+ownNamespace)
	cm := w.sharedConfig(w.ns, w.ns+", "+long)

	for claim, tier := range map[*corev1.PersistentVolumeClaim]string{early: "short", w.claim(long, "long"): "long"} {
		pv := w.bound(claim)
		equal(t, "the volume of "+claim.Name, pv.Spec.NFS.Path, "/"+tier+"/"+pv.Name)
	}
	unlisted := w.claim(w.ns+"-unlisted", "unlisted")
	for _, about := range []metav1.Object{unlisted, cm} {
		w.event(about, "ClassNotListed", "class "+w.ns+"-unlisted", "data.classes")
	}
	w.event(w.claim(unlabelled, "unlabelled"), "WaitingForConfig", "too long", naming)
	data := scripted(deletes+offer, map[string]string{"classes": "*"})
	w.edit(cm, data)
	w.bound(unlisted)
}

// A claim of a namespace that the config does not list gets no run, until it does. What exists is
// deleted in any case.
func TestAConfigServesOnlyTheNamespacesThatItLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "namespaces")
	data := scripted(deletes+offer, map[string]string{"namespaces": "team-a, ci-*"})
	class, cm := w.service(data)
	claim := w.claim(class, "data")
	w.event(claim, "NamespaceNotListed", "its key namespaces", "add "+w.ns+" to data.namespaces")
	w.noJob(claim, 5*time.Second)
	data["namespaces"] = "team-a, " + w.ns[:len(w.ns)-2] + "*"
	w.edit(cm, data)
	w.bound(claim)
	data["namespaces"] = "team-a"
	w.edit(cm, data)
	w.deleteClaim(claim)
	w.vanished(claim)
}

// A second ConfigMap with the label of a class, as a generator of names makes it, stops nothing.
func TestLastGoodRevisionOfTwoConfigsGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "two-configs")
	class, cm := w.service(scripted(deletes+offer, nil))
	w.bound(w.claim(class, "first"))
	second := cm.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Name: cm.Name + "-2", Namespace: cm.Namespace, Labels: cm.Labels}
	second.Data["timeout"] = "9m"
	second = w.configMap(second)
	w.edit(second, second.Data) // and with it time for the dispatchers' caches
	claim := w.claim(class, "second")
	w.bound(claim)
	for _, about := range []metav1.Object{claim, cm, second} {
		w.event(about, "AmbiguousConfig", cm.Name+" and "+second.Name, "last valid revision")
	}
}

// Kubernetes never binds a claim from a backup that was bound there and names no volume.
func TestNothingIsProvisionedForAClaimThatIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "lost")
	class, _ := w.service(scripted(deletes+offer, nil))
	claim := w.claim(class, "lost", func(claim *corev1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{
			"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes",
			"volume.kubernetes.io/storage-provisioner": "flex-provisioner.io",
		}
	})
	// The dispatcher sees what the PV controller sees, and may do so before it.
	w.event(claim, "ClaimLost", "annotate pvc lost pv.kubernetes.io/bind-completed-", "docs/operate.md#volumes-that-are-kept")
	w.eventually(toBind, "the PV controller to say that the claim is lost", func(ctx context.Context) error {
		now, err := lookClaim(ctx, claim)
		if err == nil && now.Status.Phase != corev1.ClaimLost {
			err = fmt.Errorf("its phase is %s", now.Status.Phase)
		}
		return err
	})
	equal(t, "the claim's Jobs", len(w.jobs(claim, "provision")), 0)
	now := w.look(claim)
	delete(now.Annotations, "pv.kubernetes.io/bind-completed")
	_, err := kube.CoreV1().PersistentVolumeClaims(w.ns).Update(w.ctx(), now, metav1.UpdateOptions{})
	w.must(err, "remove the annotation")
	w.bound(claim)
}
