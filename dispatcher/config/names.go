package config

import "github.com/flex-provisioner/flex-provisioner/contract"

// Labels of the objects that the dispatcher creates.
const (
	// LabelManagedBy marks Jobs, their pods and config revisions as the dispatcher's.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "flex-dispatcher"
	// SelectManaged is the label selector of the dispatcher's Jobs, pods and config revisions.
	SelectManaged = LabelManagedBy + "=" + ManagedBy
	// LabelClass holds a hash of the storage class's name, since a class's name may be longer than
	// a label's value.
	LabelClass = contract.Domain + "class"
)

// AnnUnusedSince marks a config revision that nothing names any more, with the time of the mark
// (RFC 3339). The revision is deleted an hour later, unless something names it again.
const AnnUnusedSince = contract.Domain + "unused-since"

// AnnDataSize is on no stored object. The caches set it on a ConfigMap whose data are larger than
// MaxData, and keep no data of it: it is their size, in bytes.
const AnnDataSize = contract.Domain + "data-size"

// AnnNamespaces lists, on the leader's lease, the config namespaces that are served or were served
// before, separated by commas.
const AnnNamespaces = contract.Domain + "namespaces"
