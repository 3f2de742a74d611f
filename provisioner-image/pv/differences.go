package pv

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// IsRetained reports whether the claim that the PV was bound to is deleted, and the PV's volume is
// kept.
func IsRetained(of *corev1.PersistentVolume) bool {
	return of.Status.Phase == corev1.VolumeReleased && of.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// Differences returns a line for each field in which two sources differ, sorted. The names of Secrets,
// which are made of the UID of their claim, are left out.
func Differences(from, to corev1.PersistentVolumeSource) []string {
	a, b := fields(from), fields(to)
	all := maps.Clone(a)
	maps.Copy(all, b)
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if a[path] != b[path] {
			lines = append(lines, fmt.Sprintf("%s was %s, is %s", path, orNone(a[path]), orNone(b[path])))
		}
	}
	return lines
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// fields returns the fields of a source by their paths.
func fields(source corev1.PersistentVolumeSource) map[string]string {
	found := map[string]string{}
	data, err := json.Marshal(source)
	var tree any
	if err == nil {
		err = json.Unmarshal(data, &tree)
	}
	if err != nil {
		return found // no source that was read from JSON or made for it
	}
	collect(found, "", tree)
	return found
}

func collect(found map[string]string, path string, value any) {
	object, ok := value.(map[string]any)
	if !ok {
		found[path] = fmt.Sprint(value)
		return
	}
	for key, inner := range object {
		if below := key; key != "secretRef" && key != "nodeStageSecretRef" {
			if path != "" {
				below = path + "." + key
			}
			collect(found, below, inner)
		}
	}
}
