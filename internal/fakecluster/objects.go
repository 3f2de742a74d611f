package fakecluster

import (
	"maps"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Names that the helpers of this package give.
const (
	Admin = "admin" // who sets up classes, configs and nodes
	User  = "user"  // who creates claims
	// ConfigNamespace is where configs and their Jobs are.
	ConfigNamespace = "flex-provisioner"
	// ClaimNamespace is where claims are.
	ClaimNamespace = "app"
	// GoldImage is the image of the class gold.
	GoldImage = "localhost/gold:v1"
)

// SetUpGold creates the class gold with its config and ServiceAccount. Keys are further keys of the
// config: key, value, key, value…
func (c *Cluster) SetUpGold(image func(*Run) Exit, keys ...string) {
	c.Images[GoldImage] = Image{Does: image}
	c.CreateClass("gold", corev1.PersistentVolumeReclaimDelete)
	c.CreateServiceAccount("true")
	c.CreateConfig("gold", "gold", keys...)
}

// SetUpExpandableGold is SetUpGold with an image and a class that expand.
func (c *Cluster) SetUpExpandableGold(image func(*Run) Exit, keys ...string) {
	c.Images[GoldImage] = Image{Does: image}
	c.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, Expandable)
	c.CreateServiceAccount("true")
	c.CreateConfig("gold", "gold", append([]string{"verbs", "provision,delete,expand"}, keys...)...)
}

// CreateClass creates a class of the dispatcher's with binding mode Immediate.
func (c *Cluster) CreateClass(name string, policy corev1.PersistentVolumeReclaimPolicy, changes ...func(*storagev1.StorageClass)) {
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: contract.ProvisionerName, ReclaimPolicy: &policy,
		VolumeBindingMode: new(storagev1.VolumeBindingImmediate),
	}
	for _, change := range changes {
		change(class)
	}
	Create(c, Admin, class)
}

// WaitForFirstConsumer is a change of a class: its binding mode.
func WaitForFirstConsumer(class *storagev1.StorageClass) {
	class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
}

// Expandable is a change of a class: its claims may ask for more.
func Expandable(class *storagev1.StorageClass) { class.AllowVolumeExpansion = new(true) }

// CreateServiceAccount creates the ServiceAccount writer with a value of the label that permits its
// use.
func (c *Cluster) CreateServiceAccount(label string) {
	Create(c, Admin, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Name: "writer", Namespace: ConfigNamespace, Labels: map[string]string{contract.LabelProvisioner: label},
	}})
}

// CreateConfig creates a provisioner config; keys are key, value, key, value…
func (c *Cluster) CreateConfig(name, class string, keys ...string) *corev1.ConfigMap {
	return c.CreateConfigIn(ConfigNamespace, name, class, keys...)
}

// CreateConfigIn creates a provisioner config in a namespace.
func (c *Cluster) CreateConfigIn(namespace, name, class string, keys ...string) *corev1.ConfigMap {
	data := map[string]string{"image": GoldImage, "service-account-name": "writer", "verbs": "provision,delete"}
	maps.Copy(data, pairs(keys))
	return Create(c, Admin, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{
			contract.LabelType: contract.TypeConfig, contract.LabelStorageClass: class,
		}},
		Data: data,
	})
}

// UpdateConfig changes keys of the config gold.
func (c *Cluster) UpdateConfig(keys ...string) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gold", Namespace: ConfigNamespace}}
	Update(c, Admin, config, func(cm *corev1.ConfigMap) { maps.Copy(cm.Data, pairs(keys)) })
}

func pairs(keys []string) map[string]string {
	out := map[string]string{}
	for i := 0; i+1 < len(keys); i += 2 {
		out[keys[i]] = keys[i+1]
	}
	return out
}

// CreateClaim creates a claim of the class gold.
func (c *Cluster) CreateClaim(name string, changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ClaimNamespace, Finalizers: []string{FinalizerPVCProtection}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("gold"),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}
	for _, change := range changes {
		change(claim)
	}
	return Create(c, User, claim)
}

// Claim returns a claim as it is now, or nil.
func (c *Cluster) Claim(name string) *corev1.PersistentVolumeClaim {
	return Get[*corev1.PersistentVolumeClaim](c, ClaimNamespace, name)
}

// IsBound returns a condition: a claim is bound.
func (c *Cluster) IsBound(name string) func() bool {
	return func() bool {
		claim, found := sharedOne[*corev1.PersistentVolumeClaim](c, ClaimNamespace, name)
		return found && claim.Spec.VolumeName != ""
	}
}

// AllBound reports whether every claim is bound.
func (c *Cluster) AllBound() bool {
	for _, claim := range shared[*corev1.PersistentVolumeClaim](c) {
		if claim.Spec.VolumeName == "" {
			return false
		}
	}
	return true
}

// PVOf returns the PV of a claim, or nil.
func (c *Cluster) PVOf(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return Get[*corev1.PersistentVolume](c, "", contract.PVName(string(claim.UID)))
}

// HeldRecords returns the names of the Jobs that carry a finalizer of the dispatcher's, and so a
// claim's record.
func (c *Cluster) HeldRecords() []string {
	var out []string
	for _, job := range shared[*batchv1.Job](c) {
		for _, f := range job.Finalizers {
			if strings.HasPrefix(f, contract.Domain) {
				out = append(out, job.Name)
			}
		}
	}
	return out
}
