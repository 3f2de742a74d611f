//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// copying is a class whose image may copy claims.
func (w *world) copying() string {
	w.t.Helper()
	w.class(w.ns, parameter("type", "lvm"), parameter("smartclone", "true"))
	w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"data-sources": "PersistentVolumeClaim"}))
	return w.ns
}

func from(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name}
	}
}

// A claim with another as its source gets a copy of its volume, by Cinder's own word.
func TestClaimIsCloned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "copy")
	class := w.copying()
	source := w.claim(class, "source")
	w.bound(source)
	for name, ask := range map[string]func(*corev1.PersistentVolumeClaim){
		"by-source": from("source"),
		"by-annotation": func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"k8s.io/CloneRequest": "source"}
		},
	} {
		copied := w.claim(class, name, ask)
		w.bound(copied)
		equal(t, "the volume that Cinder copied for "+name, w.onlyVolume(copied).SourceID, w.onlyVolume(source).ID)
		equal(t, "k8s.io/CloneOf of "+name, w.look(copied).Annotations["k8s.io/CloneOf"], w.ns+"/source")
	}
}

// Another namespace's claim is not copied without that namespace's consent, nor by an image that cannot.
func TestCloneNeedsConsentAndAnImageThatCanClone(t *testing.T) {
	t.Parallel()
	w, others := newWorld(t, "copy"), newWorld(t, "others")
	class := w.copying()
	source := others.claim(cinderClass, "source")
	others.bound(source)
	stolen := w.claim(class, "stolen", func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"k8s.io/CloneRequest": others.ns + "/source"}
	})
	w.event(stolen, "SourceRefused", "ReferenceGrant", others.ns+"/source")
	other := others.claim(cinderClass, "copy", from("source"))
	others.event(other, "DataSourceNotSupported", "data-sources")
	for _, claim := range []*corev1.PersistentVolumeClaim{stolen, other} {
		if jobs := w.jobs(claim, ""); len(jobs) > 0 {
			t.Errorf("the claim %s has the Jobs %v", claim.Name, names(jobs))
		}
	}
}

// Volumes are exported by the documented workflow where the class asks for it.
func TestReserveWorkflowProvisionsAndDeletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "reserve")
	w.class(w.ns, parameter("type", "lvm"), parameter("attach-api", "reserve"))
	w.config(ownNamespace, w.ns, cinderConfig(nil))
	claim := w.claim(w.ns, "data")
	pv := w.bound(claim)
	equal(t, "the workflow", pv.Annotations["flex-provisioner.io/cinder-attach-api"], "reserve")
	equal(t, "the volume's status", w.onlyVolume(claim).Status, "attaching")
	w.deleteClaim(claim)
	w.vanished(claim)
}
