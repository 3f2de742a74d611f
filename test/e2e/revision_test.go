//go:build e2e

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// An edit of a config serves the next claim, without a restart of anything. What was made before it
// is deleted under the revision that made it, although ConfigMap and class no longer exist.
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
