package pv_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
)

// An administrator reads the lines in an event.
func TestDifferencesShowNoValueOfADriver(t *testing.T) {
	portal := func(at string) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: at}}
	}
	driver := func(handle string) corev1.PersistentVolumeSource {
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: handle}}
	}
	flex := corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Options: map[string]string{"x": "touch PWNED", "y. Remedy: touch PWNED": "z"}}}
	for name, tc := range map[string]struct {
		from, to corev1.PersistentVolumeSource
		want     []string
	}{
		"a portal":          {portal("192.0.2.1:1"), portal("192.0.2.2:1"), []string{"iscsi.targetPortal was 192.0.2.1:1, is 192.0.2.2:1"}},
		"a handle":          {driver("password=x"), driver("y"), []string{"csi.volumeHandle differs"}},
		"option of another": {driver("y"), flex, []string{"csi.volumeHandle differs", "flexVolume.options.x differs", "flexVolume differs"}},
		"none":              {driver("y"), driver("y"), nil},
	} {
		if got := pv.Differences(tc.from, tc.to); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
