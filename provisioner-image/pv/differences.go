package pv

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
)

// IsRetained reports whether the claim that the PV was bound to is deleted, and the PV's volume is
// kept.
func IsRetained(of *corev1.PersistentVolume) bool {
	isReleased := of.Status.Phase == corev1.VolumeReleased || of.Status.Phase == corev1.VolumeFailed // which the PV controller never changes
	return isReleased && of.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// Differences returns a line for each field in which two sources differ, sorted. The names of Secrets,
// which are made of the UID of their claim, are left out. Values are shown of the kinds whose fields name
// portals, ports and monitors: in others a driver may keep a password, or a forged PV a command.
func Differences(from, to corev1.PersistentVolumeSource) []string {
	a, b := fields(from), fields(to)
	all := maps.Clone(a)
	maps.Copy(all, b)
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if a[path] != b[path] {
			lines = append(lines, difference(path, a[path], b[path]))
		}
	}
	return lines
}

func difference(path, was, is string) string {
	switch kind, _, _ := strings.Cut(path, "."); kind {
	case "iscsi", "fc":
		return fmt.Sprintf("%s was %s, is %s", path, orNone(was), orNone(is))
	default:
		if strings.ContainsFunc(path, unicode.IsSpace) {
			path = kind // no name of a driver's
		}
		return path + " differs"
	}
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
