package jobs

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
)

// environment is the request as variables: the API properties, then the config's and the class's own.
func environment(p Plan) []corev1.EnvVar {
	r := p.Request
	vars := []corev1.EnvVar{{Name: "HOME", Value: homeDir}}
	add := func(property, value string) {
		vars = append(vars, corev1.EnvVar{Name: contract.EnvName(property), Value: literal(value)})
	}
	add(contract.PropVerb, string(p.Verb))
	add(contract.PropPVName, r.PVName)
	add(contract.PropUsername, r.Username)
	add(contract.PropGroup, r.Group)
	add(contract.PropStorageClass, r.Class)
	add(contract.PropServiceAccount, p.Config.ServiceAccount)
	add(contract.PropKubeAPI, p.KubeAPI)
	add(contract.PropSize, strconv.FormatInt(r.Size, 10))
	add(contract.PropClaimName, r.Name)
	add(contract.PropClaimNamespace, r.Namespace)
	add(contract.PropClaimUID, r.UID)
	add(contract.PropAccessModes, strings.Join(r.AccessModes, ","))
	add(contract.PropVolumeMode, r.VolumeMode)
	add(contract.PropMountOptions, strings.Join(r.MountOptions, ","))
	add(contract.PropReclaimPolicy, r.ReclaimPolicy)
	add(contract.PropSelectedNode, r.SelectedNode)
	add(contract.PropSelectedZone, r.SelectedZone)
	add(contract.PropUndo, strconv.FormatBool(r.Undo))
	for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
		add(name, r.Properties[name])
	}
	return vars
}

// literal keeps the kubelet from expanding $(OS_PASSWORD) in text that is not ours.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }
