//go:build e2e

package e2e

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// The original design's example runs an image that reads nothing but its environment, and every row
// of the design's table of properties arrives when user tom asks for a volume of the class silver.
// The test changes what docs/contract.md#from-the-original-design lists: the namespace and the four
// places that the file names, the class's reclaim policy to Retain, since the config has no verb
// delete, and the ServiceAccount, which gets its label and its permission. The lab
// of Kubernetes 1.36 has deploy/claim-creator; without it the username is empty.
func TestOriginalDesignsExampleProvisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "silver")
	w.class("silver", func(class *storagev1.StorageClass) {
		class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	})
	w.accountFoo()
	cm := w.originalConfig()
	claim := w.claimBy(w.tom(), "silver", "data")
	w.retained(claim)
	pv := w.bound(claim)

	if pv.Spec.NFS == nil {
		t.Fatalf("the PV has no nfs source: %+v", pv.Spec.PersistentVolumeSource)
	}
	equal(t, "the PV's server", pv.Spec.NFS.Server, "10.10.2.4")
	for property, want := range map[string]string{
		"PV_NAME":         "pvc-" + string(claim.UID),
		"USERNAME":        knownUser,
		"STORAGE_CLASS":   "silver",
		"ZONE":            "west",
		"USE_NFS_SERVER":  "10.10.2.4",
		"SERVICE_ACCOUNT": "foo",
		"SERVICE_TOKEN":   "23092390532lksf90kwelklfw",
	} {
		equal(t, "the property "+property, pv.Annotations["e2e/FLEX_"+property], want)
	}
	api, err := url.Parse(pv.Annotations["e2e/FLEX_KUBE_API"])
	w.must(err, "read the property KUBE_API")
	equal(t, "the property KUBE_API "+api.String()+" is an https URL", api.Scheme == "https" && api.Host != "", true)

	warning := w.event(cm, "ConfigWarning", "service-token", "env-from-secret")
	if strings.Contains(warning.Note, "23092390532lksf90kwelklfw") {
		t.Errorf("the warning tells the token")
	}
}

// accountFoo is the ServiceAccount that the example names, with the label that lets configs name
// it.
func (w *world) accountFoo() {
	w.t.Helper()
	_, err := kube.CoreV1().ServiceAccounts(ownNamespace).Create(w.ctx(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "foo", Labels: map[string]string{"flex-provisioner.io/provisioner": "true"}},
	}, metav1.CreateOptions{})
	w.must(err, "create the ServiceAccount foo")
	w.remove(func() {
		w.gone(kube.CoreV1().ServiceAccounts(ownNamespace).Delete(w.ctx(), "foo", metav1.DeleteOptions{}), "ServiceAccount foo")
	})
	w.bindVolumes(rbacv1.Subject{Kind: "ServiceAccount", Name: "foo", Namespace: ownNamespace})
}

// bindVolumes lets a subject write PVs, as any image must that writes its own.
func (w *world) bindVolumes(subject rbacv1.Subject) {
	w.t.Helper()
	_, err := kube.RbacV1().ClusterRoleBindings().Create(w.ctx(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "flex-provisioner-volumes"},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	w.must(err, "bind the role flex-provisioner-volumes")
	w.remove(func() {
		w.gone(kube.RbacV1().ClusterRoleBindings().Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "ClusterRoleBinding "+w.ns)
	})
}

func (w *world) originalConfig() *corev1.ConfigMap {
	w.t.Helper()
	text, err := os.ReadFile("testdata/custom-isci-provisioner.yaml")
	w.must(err, "read the example")
	var cm corev1.ConfigMap
	w.must(yaml.UnmarshalStrict(text, &cm), "read the example")
	return w.configMap(&cm)
}

// tom is a user who may have claims in the test's namespace, and nothing else; more verbs allow
// more with them.
func (w *world) tom(more ...string) kubernetes.Interface {
	w.t.Helper()
	claims := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"persistentvolumeclaims"}, Verbs: append(more, "create", "get")}
	_, err := kube.RbacV1().Roles(w.ns).Create(w.ctx(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "tom"}, Rules: []rbacv1.PolicyRule{claims},
	}, metav1.CreateOptions{})
	w.must(err, "create tom's role")
	_, err = kube.RbacV1().RoleBindings(w.ns).Create(w.ctx(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "tom"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "tom"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "tom"}},
	}, metav1.CreateOptions{})
	w.must(err, "bind tom's role")
	config := rest.CopyConfig(kubeConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: "tom"}
	client, err := kubernetes.NewForConfig(config)
	w.must(err, "make tom's client")
	w.eventually(toBind, "tom's role to count", func(ctx context.Context) error {
		_, err := client.CoreV1().PersistentVolumeClaims(w.ns).Create(ctx, &corev1.PersistentVolumeClaim{}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if apierrors.IsForbidden(err) {
			return err // the API server learns of roles a moment later
		}
		return nil
	})
	return client
}

// retained removes the PV of a class with the policy Retain when the test ends, since the
// dispatcher keeps it. The image of this test made no volume.
func (w *world) retained(claim *corev1.PersistentVolumeClaim) {
	w.whenDone(func() {
		w.gone(kube.CoreV1().PersistentVolumeClaims(w.ns).Delete(w.ctx(), claim.Name, metav1.DeleteOptions{}), "claim "+claim.Name)
		name := "pvc-" + string(claim.UID)
		w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), name, metav1.DeleteOptions{}), "PersistentVolume "+name)
	})
}
