package test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// ofTheDriver are the texts of a volume source that the kubelet hands to a driver as they are, or by
// which it finds the driver among those that it knows. The driver checks what it makes paths and
// arguments of.
var ofTheDriver = []string{"csi.driver", "csi.volumeHandle", "csi.volumeAttributes", "flexVolume.driver", "flexVolume.options"}

// The kubelet joins texts of a volume source to paths and arguments. The keyring of an rbd source, as
// kubelets mounted it up to Kubernetes 1.30, once named any file of a node: rbd was a listed kind, and
// none of its texts had a form.
func TestEveryTextOfAListedVolumeSourceHasARule(t *testing.T) {
	texts, _ := policies(t)
	policy := texts["flex-pv-source"]
	listed := 0
	for kind := range reflect.TypeFor[corev1.PersistentVolumeSource]().Fields() {
		if name := nameOf(kind); strings.Contains(policy, "has(object.spec."+name+")") {
			listed++
			mustHaveRules(t, policy, name, kind.Type.Elem())
		}
	}
	if listed != 7 {
		t.Errorf("%d kinds of volume source are listed", listed)
	}
}

// mustHaveRules checks that a policy names each text of a kind of volume source.
func mustHaveRules(t *testing.T, policy, kind string, source reflect.Type) {
	t.Helper()
	for field := range source.Fields() {
		text := field.Type
		if text.Kind() == reflect.Pointer || text.Kind() == reflect.Slice {
			text = text.Elem()
		}
		name := nameOf(field)
		isText := slices.Contains([]reflect.Kind{reflect.String, reflect.Struct, reflect.Map}, text.Kind())
		ruled := regexp.MustCompile(`object\.spec\.\??` + kind + `\.\??` + name + `\b`).MatchString(policy)
		if isText && !ruled && !slices.Contains(ofTheDriver, kind+"."+name) {
			t.Errorf("pv-source-policy.yaml has no rule for %s.%s", kind, name)
		}
	}
}

// nameOf is the name of a field in JSON.
func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}
