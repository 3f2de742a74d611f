package controller_test

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

const (
	home  = "flex-provisioner"
	admin = "admin"
	user  = "user"
	gold  = "localhost/gold:v1" // the image of the class gold
)

// goldClass sets up the class gold with its config and ServiceAccount, served by an image that does so.
func (w *world) goldClass(does func(*run) ending, keys ...string) {
	w.images[gold] = image{does: does}
	w.class("gold", corev1.PersistentVolumeReclaimDelete)
	w.account("true")
	w.config("gold", "gold", keys...)
}

func (w *world) class(name string, policy corev1.PersistentVolumeReclaimPolicy, changes ...func(*storagev1.StorageClass)) {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: contract.ProvisionerName, ReclaimPolicy: &policy,
		VolumeBindingMode: new(storagev1.VolumeBindingImmediate),
	}
	for _, change := range changes {
		change(class)
	}
	add(w, admin, class)
}

func firstConsumer(class *storagev1.StorageClass) {
	class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
}

// account creates the ServiceAccount writer with a value of our label.
func (w *world) account(label string) {
	add(w, admin, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Name: "writer", Namespace: home, Labels: map[string]string{contract.LabelProvisioner: label},
	}})
}

// config creates a provisioner ConfigMap; keys are key, value, key, value…
func (w *world) config(name, class string, keys ...string) *corev1.ConfigMap {
	data := map[string]string{"image": gold, "service-account-name": "writer", "verbs": "provision,delete"}
	maps.Copy(data, pairs(keys))
	return add(w, admin, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: home, Labels: map[string]string{
			contract.LabelType: contract.TypeConfig, contract.LabelStorageClass: class,
		}},
		Data: data,
	})
}

// reconfigure changes keys of the config gold.
func (w *world) reconfigure(keys ...string) {
	edit(w, admin, get[*corev1.ConfigMap](w, home, "gold"), func(cm *corev1.ConfigMap) { maps.Copy(cm.Data, pairs(keys)) })
}

func pairs(keys []string) map[string]string {
	out := map[string]string{}
	for i := 0; i+1 < len(keys); i += 2 {
		out[keys[i]] = keys[i+1]
	}
	return out
}

// claim creates a claim of the class gold.
func (w *world) claim(name string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "app", Finalizers: []string{protectsClaims}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("gold"),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
	for _, change := range changes {
		change(c)
	}
	return add(w, user, c)
}

// now is a claim as it is now, or nil.
func (w *world) now(name string) *corev1.PersistentVolumeClaim {
	return get[*corev1.PersistentVolumeClaim](w, "app", name)
}

func (w *world) bound(name string) func() bool {
	return func() bool { c := w.now(name); return c != nil && c.Spec.VolumeName != "" }
}

// pvOf is the PV of a claim, or nil.
func (w *world) pvOf(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return get[*corev1.PersistentVolume](w, "", contract.PVName(string(claim.UID)))
}

// made are the Jobs of a verb that were ever created, in order; an empty verb: of any.
func (w *world) made(verb contract.Verb) []change {
	var out []change
	for _, c := range w.server.history() {
		if job, ok := c.now.(*batchv1.Job); ok && c.verb == "create" && (verb == "" || job.Labels[jobs.LabelVerb] == string(verb)) {
			out = append(out, c)
		}
	}
	return out
}

// ran are the runs of a verb that came to their end by themselves, in order.
func (w *world) ran(verb contract.Verb) []*run {
	var out []*run
	for _, r := range w.runs {
		if r.verb == verb {
			out = append(out, r)
		}
	}
	return out
}

// empty: no volume, no PV, no Job that is a record.
func (w *world) empty() bool {
	return len(w.storage) == 0 && len(every[*corev1.PersistentVolume](w)) == 0 && len(w.records()) == 0
}

// records are the Jobs that still carry a claim's record.
func (w *world) records() []string {
	var out []string
	for _, job := range every[*batchv1.Job](w) {
		for _, f := range job.Finalizers {
			if f == jobs.FinalizerRecord {
				out = append(out, job.Name)
			}
		}
	}
	return out
}
