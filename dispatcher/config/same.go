package config

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// SameStorage reports whether the runs of two configs reach the same storage: they have the same
// ConfigMap, properties, Secrets and ServiceAccount, and their pods have the same volumes and
// variables. Image, command, scheduling and timeout may differ. A delete that finds nothing ends with
// success, so in the storage of another config it would lose the volume.
func SameStorage(a, b Config) bool {
	return a.Source.Namespace == b.Source.Namespace && a.Source.Name == b.Source.Name && a.EnvSecret == b.EnvSecret && a.FilesSecret == b.FilesSecret &&
		a.ServiceAccount == b.ServiceAccount && a.RunOn == b.RunOn && maps.Equal(a.Properties, b.Properties) &&
		equality.Semantic.DeepEqual(storageOf(a.Template), storageOf(b.Template))
}

// storageOf returns what of a pod template says which storage its containers reach. A ConfigMap that
// is mounted may hold a script, and may as well name the servers of a storage.
func storageOf(template []byte) corev1.PodSpec {
	var t corev1.PodTemplateSpec
	if len(template) == 0 || json.Unmarshal(template, &t) != nil {
		return corev1.PodSpec{}
	}
	out := corev1.PodSpec{HostNetwork: t.Spec.HostNetwork, HostAliases: t.Spec.HostAliases, Volumes: t.Spec.Volumes}
	for _, c := range slices.Concat(t.Spec.InitContainers, t.Spec.Containers) {
		out.Containers = append(out.Containers, corev1.Container{Name: c.Name, Env: c.Env, EnvFrom: c.EnvFrom, VolumeMounts: c.VolumeMounts})
	}
	return out
}
