package config

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Labels of the objects that the dispatcher creates.
const (
	// LabelManagedBy marks Jobs, their pods and config revisions as the dispatcher's.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "flex-dispatcher"
	// SelectManaged is the label selector of the dispatcher's Jobs, pods and config revisions.
	SelectManaged = LabelManagedBy + "=" + ManagedBy
	// LabelProvisioner has, on Jobs and pods, the name of the dispatcher's provisioner, or a hash
	// of a name that no label can have. The dispatchers of two provisioners may share a config
	// namespace. One of them once cancelled the other's Jobs as unwanted
	// (TestTwoProvisionersShareAConfigNamespace).
	LabelProvisioner = contract.LabelProvisioner
	// LabelClass holds a hash of the storage class's name, since a class's name may be longer than
	// a label's value.
	LabelClass = contract.Domain + "class"
)

// SelectRuns returns the label selector of the Jobs and pods of a provisioner.
func SelectRuns(provisioner string) string {
	return SelectManaged + "," + LabelProvisioner + "=" + ProvisionerLabel(provisioner)
}

// ProvisionerLabel returns the value of LabelProvisioner.
func ProvisionerLabel(provisioner string) string {
	if len(validation.IsValidLabelValue(provisioner)) == 0 {
		return provisioner
	}
	return ClassLabel(provisioner)
}

// IsOfAnotherProvisioner reports whether the labels of a Job or a pod name another provisioner.
func IsOfAnotherProvisioner(labels map[string]string, provisioner string) bool {
	by := labels[LabelProvisioner]
	return by != "" && by != ProvisionerLabel(provisioner)
}

// AnnUnusedSince marks a config revision that nothing names any more, with the time of the mark
// (RFC 3339). The revision is deleted an hour later, unless something names it again.
const AnnUnusedSince = contract.Domain + "unused-since"

// AnnTrash notes on a config revision what the ConfigMaps of its class said last of the trash. Without
// it a volume would be deleted between the deletion of a ConfigMap and its creation, if its revision is
// older than the key.
const AnnTrash = contract.Domain + "trash"

// AnnCut marks what the caches do not keep whole. It is on no stored object. A ConfigMap whose data
// are larger than MaxData has none of them, and their size in bytes as the value. A claim with only
// a part of its labels and annotations has "true", as has a PV that is too large for a Job.
const AnnCut = contract.Domain + "cut"

// AnnNamespaces lists, on the leader's lease, the config namespaces that are served or were served
// before, separated by commas.
const AnnNamespaces = contract.Domain + "namespaces"

// NotedNamespaces returns the namespaces that are noted on the leader's lease. An administrator may
// have written spaces.
func NotedNamespaces(lease metav1.Object) []string {
	return strings.FieldsFunc(lease.GetAnnotations()[AnnNamespaces], func(r rune) bool { return r == ',' || r == ' ' })
}
