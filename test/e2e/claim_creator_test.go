//go:build e2e && kube136

package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Whom images learn as the creator of tom's claims.
const knownUser, knownGroups = "tom", "system:authenticated"

// The creator of a claim is stamped over what the user wrote there, cannot be changed afterwards,
// and reaches the image of a dispatcher that runs with --trust-username.
func TestClaimCreatorIsStampedAndGuarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "asked")
	class, _ := w.service(scripted(deletes+offer, nil))
	tom := w.tom("patch")
	claim := w.claimBy(tom, class, "data", forged)
	equal(t, "the user on the claim", claim.Annotations["flex-provisioner.io/username"], "tom")
	equal(t, "the groups on the claim", claim.Annotations["flex-provisioner.io/groups"], "system:authenticated")
	w.bound(claim)
	job := w.onlyJob(claim, "provision")
	equal(t, "FLEX_USERNAME", variable(job, "FLEX_USERNAME"), knownUser)
	equal(t, "FLEX_GROUP", variable(job, "FLEX_GROUP"), knownGroups)

	for _, patch := range []string{
		`{"metadata": {"annotations": {"flex-provisioner.io/username": "root"}}}`,
		`{"metadata": {"annotations": {"flex-provisioner.io/groups": null}}}`,
	} {
		_, err := tom.CoreV1().PersistentVolumeClaims(w.ns).Patch(w.ctx(), "data", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err == nil || !strings.Contains(err.Error(), "cannot be changed") {
			t.Errorf("the patch %s was answered by: %v", patch, err)
		}
	}
	_, err := tom.CoreV1().PersistentVolumeClaims(w.ns).Patch(w.ctx(), "data", types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"team": "blue"}}}`), metav1.PatchOptions{})
	w.must(err, "annotate the claim with something else")
}

// A dispatcher without --trust-username passes no username on to the image.
func TestClaimCreatorIsNotPassedOnWithoutTrustUsername(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "nobody")
	w.started()
	w.class(w.ns, w.oursAlone)
	w.config(w.ns, w.ns, scripted(deletes+offer, nil))
	claim := w.claimBy(w.tom(), w.ns, "data", forged)
	equal(t, "the user on the claim", claim.Annotations["flex-provisioner.io/username"], "tom")
	w.bound(claim)
	job := w.onlyJob(claim, "provision")
	equal(t, "FLEX_USERNAME", variable(job, "FLEX_USERNAME"), "")
	equal(t, "FLEX_GROUP", variable(job, "FLEX_GROUP"), "")
	request := job.Spec.Template.Annotations["flex-provisioner.io/request"]
	for _, word := range []string{"tom", "system:authenticated", `"username":`, `"group":`} {
		equal(t, "the request names "+word, strings.Contains(request, word), false)
	}
}
