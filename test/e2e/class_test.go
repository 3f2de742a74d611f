//go:build e2e

package e2e

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Images that hack/images.sh builds.
const (
	cinderImage = "localhost/cinder-provisioner:dev"
	bashImage   = "localhost/custom-iscsi-provision:dev" // has a shell, wget, flex and kubectl
)

// Classes that hack/deploy.sh has applied.
const (
	cinderClass    = "cinder-iscsi"
	directoryClass = "node-directory"
	batchClass     = "file-server"
)

// class makes a storage class of ours, after change was applied to it.
func (w *world) class(name string, change ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	w.t.Helper()
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: name},
		Provisioner: "flex-provisioner.io",
		Parameters:  map[string]string{},
	}
	for _, c := range change {
		c(class)
	}
	made, err := kube.StorageV1().StorageClasses().Create(w.ctx(), class, metav1.CreateOptions{})
	w.must(err, "create the class "+name)
	w.remove(func() { w.deleteClass(name) })
	return made
}

func (w *world) deleteClass(name string) {
	w.gone(kube.StorageV1().StorageClasses().Delete(w.ctx(), name, metav1.DeleteOptions{}), "class "+name)
}

// parameter sets one of the class's parameters.
func parameter(name, value string) func(*storagev1.StorageClass) {
	return func(class *storagev1.StorageClass) { class.Parameters[name] = value }
}

// config makes the provisioner config of a class; both have one name.
func (w *world) config(namespace, class string, data map[string]string) *corev1.ConfigMap {
	w.t.Helper()
	return w.configMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: class, Namespace: namespace,
			Labels: map[string]string{"type": "provisioner-config", "storage-class": class},
		},
		Data: data,
	})
}

func (w *world) configMap(cm *corev1.ConfigMap) *corev1.ConfigMap {
	w.t.Helper()
	made, err := kube.CoreV1().ConfigMaps(cm.Namespace).Create(w.ctx(), cm, metav1.CreateOptions{})
	w.must(err, "create the config "+cm.Name)
	w.remove(func() { w.deleteConfig(made) })
	return made
}

func (w *world) deleteConfig(cm *corev1.ConfigMap) {
	w.gone(kube.CoreV1().ConfigMaps(cm.Namespace).Delete(w.ctx(), cm.Name, metav1.DeleteOptions{}), "config "+cm.Name)
}

// cinderConfig is what configmaps/cinder-iscsi.yaml says, and more.
func cinderConfig(more map[string]string) map[string]string {
	data := map[string]string{
		"image":                cinderImage,
		"verbs":                "provision,delete",
		"service-account-name": "cinder-provisioner",
		"node-selector":        "node-restriction.kubernetes.io/flex-storage-network=true",
		"files-from-secret":    "cinder",
	}
	maps.Copy(data, more)
	return data
}

// cinderService makes a class of the volume type lvm with a config of its own, both named after the
// test's namespace.
func (w *world) cinderService(more map[string]string) string {
	w.t.Helper()
	w.class(w.ns, parameter("type", "lvm"))
	w.config(ownNamespace, w.ns, cinderConfig(more))
	return w.ns
}
