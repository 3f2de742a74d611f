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
	add := func(property, value string) {
		vars = append(vars, corev1.EnvVar{Name: contract.EnvName(property), Value: literal(value)})
	}
	own := func(property, value string) {
		if len(p.With) == 0 {
			add(property, value)
		}
	}
	add(contract.PropVerb, string(p.Verb))
	own(contract.PropPVName, r.PVName)
	own(contract.PropUsername, r.Username)
	own(contract.PropGroup, r.Group)
	add(contract.PropStorageClass, r.Class)
	add(contract.PropServiceAccount, p.Config.ServiceAccount)
	add(contract.PropKubeAPI, p.KubeAPI)
	own(contract.PropSize, strconv.FormatInt(r.Size, 10))
	own(contract.PropClaimName, r.Name)
	own(contract.PropClaimNamespace, r.Namespace)
	own(contract.PropClaimUID, r.UID)
	own(contract.PropAccessModes, strings.Join(r.AccessModes, ","))
	own(contract.PropVolumeMode, r.VolumeMode)
	own(contract.PropMountOptions, strings.Join(r.MountOptions, ","))
	own(contract.PropReclaimPolicy, r.ReclaimPolicy)
	own(contract.PropSelectedNode, r.SelectedNode)
	own(contract.PropSelectedZone, r.SelectedZone)
	own(contract.PropSelectedHost, r.SelectedTopology[corev1.LabelHostname])
	add(contract.PropUndo, strconv.FormatBool(r.Undo))
	if r.ListedVolume != "" {
		own(contract.PropListedVolume, r.ListedVolume)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
		add(name, r.Properties[name])
	}
	return vars
}

// literal keeps the kubelet from expanding $(OS_PASSWORD) in text that users write.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }
