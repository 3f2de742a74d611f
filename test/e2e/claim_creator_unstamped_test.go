//go:build e2e && !kube136

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Whom images learn as the creator of tom's claims: this Kubernetes has no policy that stamps them.
const knownUser, knownGroups = "", ""

// Where claims are not stamped, one that names another creator is refused. One may name its own,
// which no later change alters, and the image learns no name.
func TestForgedClaimCreatorIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "forged")
	class, _ := w.service(scripted(deletes+offer, nil))
	tom := w.tom("patch")
	claims := tom.CoreV1().PersistentVolumeClaims(w.ns)
	_, err := claims.Create(w.ctx(), wanted(class, "lie", forged), metav1.CreateOptions{})
	refused(t, "a claim that names another creator", err, "name the user who creates it")

	claim := w.claimBy(tom, class, "data", func(claim *corev1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{"flex-provisioner.io/username": "tom"}
	})
	for _, patch := range []string{
		`{"metadata": {"annotations": {"flex-provisioner.io/username": "root"}}}`,
		`{"metadata": {"annotations": {"flex-provisioner.io/username": null}}}`,
		`{"metadata": {"annotations": {"flex-provisioner.io/groups": "system:masters"}}}`,
	} {
		_, err := claims.Patch(w.ctx(), "data", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		refused(t, "the patch "+patch, err, "cannot be changed")
	}
	w.bound(claim)
	job := w.onlyJob(claim, "provision")
	equal(t, "FLEX_USERNAME", variable(job, "FLEX_USERNAME"), knownUser)
	equal(t, "FLEX_GROUP", variable(job, "FLEX_GROUP"), knownGroups)
}

func refused(t *testing.T, what string, err error, because string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), because) {
		t.Errorf("%s was answered by: %v", what, err)
	}
}
