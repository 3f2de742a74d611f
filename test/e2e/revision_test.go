//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An edit of a config serves the next claim, without a restart of anything. What was made before it is
// deleted under the revision that made it, although ConfigMap and class no longer exist.
func TestVolumeIsDeletedUnderTheRevisionThatMadeIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "revisions")
	filer := func(name string) map[string]string {
		return scripted(deletes+strings.ReplaceAll(offer, "/exports/", "/'$FLEX_FILER'/"), map[string]string{"filer": name})
	}
	class, cm := w.service(filer("old"))
	first := w.claim(class, "first")
	oldPV := w.bound(first)
	w.edit(cm, filer("new"))
	second := w.claim(class, "second")
	newPV := w.bound(second)
	equal(t, "the old volume", oldPV.Spec.NFS.Path, "/old/"+oldPV.Name)
	equal(t, "the new volume", newPV.Spec.NFS.Path, "/new/"+newPV.Name)

	w.deleteConfig(cm)
	w.deleteClass(class)
	for claim, filer := range map[*corev1.PersistentVolumeClaim]string{first: "old", second: "new"} {
		w.deleteClaim(claim)
		w.vanished(claim)
		equal(t, "FLEX_FILER of the delete Job of "+claim.Name, variable(w.onlyJob(claim, "delete"), "FLEX_FILER"), filer)
	}
}

// All faults of a config stand in one event, on the ConfigMap and on the claim that waits, with the key
// that was meant. Once the config is corrected it is used.
func TestAllFaultsOfAConfigAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "faults")
	class, cm := w.service(scripted(offer, map[string]string{
		"image": "", "timeout": "soon", "node-selectors": "disk=ssd", "maxAttempts": "3", "verbs": "provision,erase",
	}))
	claim := w.claim(class, "data")
	faults := []string{
		"data[image]: Required", "data[timeout]", `"soon"`, "data[node-selectors]", "did you mean node-selector?",
		"data[maxAttempts]", "did you mean max-attempts?", "data[verbs]", `"erase"`,
	}
	w.event(claim, "InvalidConfig", faults...)
	w.event(cm, "InvalidConfig", faults...)
	equal(t, "events of the claim's faults", len(w.notes(claim, "InvalidConfig")), 1)
	w.edit(cm, scripted(deletes+offer, nil))
	w.bound(claim)
}

// An event on the ConfigMap reports a faulty edit, and the last good revision stays in use meanwhile.
func TestLastGoodRevisionStaysInUseWhileAnEditIsFaulty(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "last-good")
	good := scripted(deletes+offer, nil)
	class, cm := w.service(good)
	before := w.claim(class, "before")
	pv := w.bound(before)
	w.edit(cm, scripted(deletes+"exit 1", map[string]string{"node-selectors": "disk=ssd", "max-parallel": "none"}))
	after := w.claim(class, "after")
	equal(t, "the revision", w.bound(after).Annotations["flex-provisioner.io/config-revision"], pv.Annotations["flex-provisioner.io/config-revision"])
	w.event(cm, "ConfigWarning", "did you mean node-selector?", "data[max-parallel]", "the last good revision", "stays in use")
}

// Two ConfigMaps of one class are both named, and neither is used until one is deleted.
func TestTwoConfigsOfOneClassAreBothNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "two")
	class, _ := w.service(scripted(deletes+offer, nil))
	second := w.configMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.ns + "-too", Namespace: ownNamespace,
			Labels: map[string]string{"type": "provisioner-config", "storage-class": class},
		},
		Data: scripted(deletes+offer, nil),
	})
	claim := w.claim(class, "data")
	w.event(claim, "AmbiguousConfig", w.ns+" and "+second.Name, class)
	w.noJob(claim, 3*time.Second)
	w.deleteConfig(second)
	w.bound(claim)
}

// A ConfigMap in a namespace that the class does not name is not used, be it the claim's own namespace or one
// of the config namespaces.
func TestConfigsOfOtherNamespacesAreIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "elsewhere")
	w.class(w.ns)
	for _, namespace := range []string{w.ns, nodeNamespace} {
		w.config(namespace, w.ns, scripted(deletes+offer, nil))
	}
	claim := w.claim(w.ns, "data")
	w.event(claim, "WaitingForConfig", "create a ConfigMap in the namespace "+ownNamespace)
	named := w.ns + "-named"
	w.class(named, parameter("flex-provisioner.io/config-namespace", w.ns))
	w.config(w.ns, named, scripted(deletes+offer, nil))
	other := w.claim(named, "other")
	w.event(other, "NamespaceNotServed", w.ns, "--config-namespaces")
	w.noJob(claim, 3*time.Second)
	w.noJob(other, time.Second)
}
