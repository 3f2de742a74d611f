//go:build e2e && kube136

package e2e

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The annotations of the PV controller: when it has asked for a volume itself, it has written both.
const (
	annBetaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
)

// A new claim of a class of ours is stamped by deploy/stamp, whether it names its class or gets it by default, and is bound without another
// write of the PV controller's annotations.
func TestStampedClaimIsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "stamped")
	w.stampClaims()
	class, _ := w.service(scripted(deletes+offer, nil), isDefault)
	w.untilStamped(class)
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"named":     func(*corev1.PersistentVolumeClaim) {},
		"defaulted": func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil },
	} {
		claim := w.claim(class, name, change)
		equal(t, "the class of the claim "+name, *claim.Spec.StorageClassName, class)
		equal(t, "the stamp on the claim "+name, claim.Annotations[annStorageProvisioner], "flex-provisioner.io")
		w.bound(claim)
		equal(t, "what the PV controller has written on the claim "+name, w.look(claim).Annotations[annBetaStorageProvisioner], "")
	}
}

// A claim that Kubernetes may bind to a volume that exists, or that another provisioner serves, is not stamped, and an annotation of its creator stays.
func TestClaimThatIsNotToBeServedAtOnceIsNotStamped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unstamped")
	w.stampClaims()
	foreign, delayed, ours := w.ns+"-foreign", w.ns+"-delayed", w.ns
	w.class(foreign, func(class *storagev1.StorageClass) { class.Provisioner = "example.com/another" })
	w.class(delayed, firstConsumer)
	w.class(ours)
	w.untilStamped(ours) // the API server has learned of it last
	for name, tt := range map[string]struct {
		class  string
		change func(*corev1.PersistentVolumeClaim)
		want   string
	}{
		"of another provisioner":      {class: foreign},
		"of a class that waits":       {class: delayed},
		"without any class":           {class: ""},
		"of a class that is missing":  {class: w.ns + "-missing"},
		"that names a volume":         {class: ours, change: func(claim *corev1.PersistentVolumeClaim) { claim.Spec.VolumeName = "by-hand" }},
		"with a selector":             {class: ours, change: func(claim *corev1.PersistentVolumeClaim) { claim.Spec.Selector = &metav1.LabelSelector{} }},
		"that a populator fills":      {class: ours, change: populated},
		"with its class as of old":    {class: ours, change: annotated("volume.beta.kubernetes.io/storage-class", foreign)},
		"that is annotated":           {class: ours, change: annotated(annStorageProvisioner, "example.com/by-hand"), want: "example.com/by-hand"},
		"that is annotated as of old": {class: ours, change: annotated(annBetaStorageProvisioner, "example.com/by-hand")},
	} {
		var changes []func(*corev1.PersistentVolumeClaim)
		if tt.change != nil {
			changes = append(changes, tt.change)
		}
		claim, err := w.tryClaim(w.ctx(), tt.class, changes...)
		w.must(err, "try a claim "+name)
		equal(t, "the stamp on a claim "+name, claim.Annotations[annStorageProvisioner], tt.want)
	}
}

func isDefault(class *storagev1.StorageClass) {
	class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
}

func annotated(key, value string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) { claim.Annotations = map[string]string{key: value} }
}

func populated(claim *corev1.PersistentVolumeClaim) {
	claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("example.com"), Kind: "Backup", Name: "monday"}
}

// stampClaims applies the policy of deploy/stamp to the test's namespace alone. It is deleted with the test.
func (w *world) stampClaims() {
	w.t.Helper()
	admission := kube.AdmissionregistrationV1()
	docs := documents(w, "../../deploy/stamp/policy.yaml")
	var policy admissionregistrationv1.MutatingAdmissionPolicy
	var binding admissionregistrationv1.MutatingAdmissionPolicyBinding
	w.must(yaml.UnmarshalStrict([]byte(docs[0]), &policy), "read the policy")
	w.must(yaml.UnmarshalStrict([]byte(docs[1]), &binding), "read its binding")
	policy.Name, binding.Name, binding.Spec.PolicyName = w.ns, w.ns, w.ns
	policy.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.ns}}
	w.remove(func() {
		w.gone(admission.MutatingAdmissionPolicyBindings().Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "policy binding "+w.ns)
		w.gone(admission.MutatingAdmissionPolicies().Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "policy "+w.ns)
	})
	_, err := admission.MutatingAdmissionPolicies().Create(w.ctx(), &policy, metav1.CreateOptions{})
	w.must(err, "create the policy")
	_, err = admission.MutatingAdmissionPolicyBindings().Create(w.ctx(), &binding, metav1.CreateOptions{})
	w.must(err, "bind the policy")
}

// untilStamped waits until the API server keeps the policy for the claims of a class.
func (w *world) untilStamped(class string) {
	w.t.Helper()
	w.eventually(toBind, "the API server to keep the policy of "+class, func(ctx context.Context) error {
		claim, err := w.tryClaim(ctx, class)
		if err == nil && claim.Annotations[annStorageProvisioner] == "" {
			err = fmt.Errorf("a claim of the class %s is not stamped", class)
		}
		return err
	})
}

// tryClaim returns the claim as the API server would create it.
func (w *world) tryClaim(ctx context.Context, class string, change ...func(*corev1.PersistentVolumeClaim)) (*corev1.PersistentVolumeClaim, error) {
	return kube.CoreV1().PersistentVolumeClaims(w.ns).Create(ctx, wanted(class, "try", change...), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}
