package jobs

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// environment returns the request as variables: the API properties, then those of config and class.
// In a batch there are no variables of a single claim: an image that does not know batches would
// apply the first request to all of them.
func environment(p Plan) []corev1.EnvVar {
	r := p.Request
	vars := []corev1.EnvVar{{Name: "HOME", Value: homeDir}}
	if p.Config.Script != "" { // as where flex runs it for one of several requests
		vars = append(vars, corev1.EnvVar{Name: "TMPDIR", Value: homeDir})
	}
	add := func(property, value string) {
		vars = append(vars, corev1.EnvVar{Name: contract.EnvName(property), Value: literal(value)})
	}
	add(contract.PropVerb, string(p.Verb))
	if len(p.With) == 0 {
		for _, own := range r.OwnVariables() {
			add(own.Property, own.Value)
		}
	}
	add(contract.PropStorageClass, r.Class)
	add(contract.PropServiceAccount, p.Config.ServiceAccount)
	add(contract.PropKubeAPI, p.KubeAPI)
	add(contract.PropUndo, strconv.FormatBool(r.Undo))
	for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
		add(name, r.Properties[name])
	}
	return vars
}

// literal keeps the kubelet from expanding $(OS_PASSWORD) in text that users write.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }
