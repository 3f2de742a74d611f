package jobs

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// Missing returns what of a Job was not stored. Without its labels the Job would not be seen,
// without its annotations it would be no record, and without its finalizer it could vanish with
// what it has made.
func Missing(sent, stored *batchv1.Job) []string {
	return slices.Concat(
		patch.MissingFinalizers(nil, sent.Finalizers, stored.Finalizers),
		patch.MissingKeys("label", ownKeys(sent.Labels), stored.Labels),
		patch.MissingKeys("annotation", ownKeys(sent.Annotations), stored.Annotations),
		patch.MissingKeys("pods' label", ownKeys(sent.Spec.Template.Labels), stored.Spec.Template.Labels),
		patch.MissingKeys("pods' annotation", ownKeys(sent.Spec.Template.Annotations), stored.Spec.Template.Annotations),
	)
}

// ownKeys returns the entries that are the dispatcher's. What a config's pod-template adds may be
// changed by others.
func ownKeys(all map[string]string) map[string]string {
	own := maps.Clone(all)
	maps.DeleteFunc(own, func(key, _ string) bool {
		return key != config.LabelManagedBy && !strings.Contains(key, contract.Domain)
	})
	return own
}
