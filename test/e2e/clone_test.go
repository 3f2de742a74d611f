//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// cloning is a class whose image may clone claims.
func (w *world) cloning() string {
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

// A claim with another as its source gets a clone of its volume, as Cinder itself says.
func TestClaimIsCloned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "copy")
	class := w.cloning()
	source := w.claim(class, "source")
	w.bound(source)
	for name, ask := range map[string]func(*corev1.PersistentVolumeClaim){
		"by-source": from("source"),
		"by-annotation": func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"k8s.io/CloneRequest": "source"}
		},
	} {
		clone := w.claim(class, name, ask)
		w.bound(clone)
		equal(t, "the volume that Cinder copied for "+name, w.onlyVolume(clone).SourceID, w.onlyVolume(source).ID)
		equal(t, "k8s.io/CloneOf of "+name, w.look(clone).Annotations["k8s.io/CloneOf"], w.ns+"/source")
	}
}

// Another namespace's claim is not cloned without that namespace's consent, nor by an image that
// cannot clone.
func TestCloneNeedsConsentAndAnImageThatCanClone(t *testing.T) {
	t.Parallel()
	w, others := newWorld(t, "copy"), newWorld(t, "others")
	class := w.cloning()
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
	equal(t, "the volume's status", w.onlyVolume(claim).Status, "in-use")
	w.deleteClaim(claim)
	w.vanished(claim)
}
