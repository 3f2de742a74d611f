package mapper

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// flexVolume maps to a FlexVolume driver that the class names and the nodes have installed.
type flexVolume struct{}

// Check refuses raw devices and mount options, which the kubelet's FlexVolume plugin does not support.
func (flexVolume) Check(w Want) error {
	if len(w.MountOptions) > 0 {
		return unsupported("the kubelet mounts no FlexVolume that has mount options: remove mountOptions from the class")
	}
	if w.IsBlock() {
		return &UnsupportedError{Claim: true, Reason: "volumeMode Block is not possible with a FlexVolume driver: ask for Filesystem"}
	}
	return promises{name: "a FlexVolume"}.check(w)
}

// secretName matches the names of options that may be secret.
var secretName = regexp.MustCompile(`(?i)pass|secret|key|token|auth|credential`)

// Map passes every detail of the connection to the driver as an option, and those that may be secret in a Secret.
func (flexVolume) Map(c volume.Connection, w Want) (Mapping, error) {
	var details map[string]any
	if err := decode(c, &details); err != nil {
		return Mapping{}, err
	}
	source := &corev1.FlexPersistentVolumeSource{
		Driver: w.FlexDriver, FSType: w.fsType(), ReadOnly: w.ReadOnly,
		Options: map[string]string{"driver_volume_type": c.Kind},
	}
	if w.Initiator != "" && strings.EqualFold(c.Kind, "iscsi") {
		source.Options["initiator_name"] = w.Initiator // by which the volume is exported
	}
	secret := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(details)) {
		text, err := optionText(details[name])
		switch {
		case err != nil:
			return Mapping{}, fmt.Errorf("option %s of a FlexVolume: %w", name, err)
		case text == "":
		case secretName.MatchString(name):
			secret[name] = []byte(text)
		default:
			source.Options[name] = text
		}
	}
	m := Mapping{Source: corev1.PersistentVolumeSource{FlexVolume: source}}
	if len(secret) > 0 {
		source.SecretRef = &w.SecretRef
		m.Secret = driverSecret(w, secret)
	}
	return m, nil
}

// driverSecret returns a Secret of the type that the kubelet passes to this driver only.
func driverSecret(w Want, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: w.secretMeta(),
		Type:       corev1.SecretType(w.FlexDriver),
		Data:       data,
	}
}

// optionText returns a string as it is, nothing for null, and JSON for any other value.
func optionText(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	default:
		text, err := json.Marshal(v)
		return string(text), err
	}
}
