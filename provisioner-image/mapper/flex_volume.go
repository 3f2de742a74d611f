package mapper

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// flexVolume maps to a FlexVolume driver that the class names and the nodes have installed.
type flexVolume struct{}

// Check refuses raw devices and mount options, which the kubelet's FlexVolume plugin does not
// support.
func (flexVolume) Check(w Want) error {
	if len(w.MountOptions) > 0 {
		return unsupported("the kubelet does not support mount options on a FlexVolume: remove mountOptions from the class")
	}
	if w.IsBlock() {
		return &UnsupportedError{Claim: true, Reason: "a FlexVolume driver does not support volumeMode Block: request Filesystem"}
	}
	return promises{name: "a FlexVolume"}.check(w)
}

// coordinates are the details that may stand on the PV, where many may read them, each with the
// form that its value must have. Every other detail is for the Secret. No pattern of names can say
// which are secret: VMDK sends vCenter's password in an object "config", and smbfs sent one among
// its mount options.
//
// The list is made from what the drivers in Cinder's tree send (the "data" beside
// "driver_volume_type" in cinder/volume/drivers and cinder/volume/targets, of all kinds): what says
// where and which the volume is. Left out are logins, texts that may hold one ("options"), and what
// no node needs ("initiator_target_map", "qos_specs"). A user name and password before the host of
// an "export" are not of its form.
var coordinates = map[string]func(string) bool{
	// Cinder itself, of every kind.
	"volume_id": isUUID, "attachment_id": isUUID, "access_mode": isWord, "encrypted": isFlag, "discard": isFlag, "cacheable": isFlag, "enforce_multipath": isFlag,
	// iSCSI and iSER, Fibre Channel.
	"target_portal": isPortal, "target_iqn": scsiNameForm.MatchString, "target_lun": isNumber, "target_discovered": isFlag,
	"target_wwn": isWWN, "wwn": isWWID, "addressing_mode": isWord, "logical_block_size": isNumber, "physical_block_size": isNumber,
	// NVMe-oF and LightOS.
	"nqn": nqnForm.MatchString, "target_nqn": nqnForm.MatchString, "subsysnqn": nqnForm.MatchString, "target_port": isPort, "transport_type": isWord, "ns_id": isNumber,
	"vol_uuid": deviceForm.MatchString, "volume_nguid": deviceForm.MatchString, "uuid": deviceForm.MatchString,
	// Shares and files: NFS, Quobyte, GPFS, local. Ceph.
	"export": isPlace, "name": isPlace, "device_path": isPlace, "format": isWord, "cluster_name": isCephName,
	// PowerFlex and StorPool.
	"scaleIO_volname": isPlace, "scaleIO_volume_id": isWord, "volume": isUUID, "client_id": isNumber,
}

// Map passes every detail of the connection to the driver: its coordinates as options, and all
// others in a Secret.
func (flexVolume) Map(c volume.Connection, w Want) (Mapping, error) {
	if w.ReadOnly {
		return Mapping{}, &UnsupportedError{Claim: true, Reason: markedReadOnly + "the kubelet asks a FlexVolume driver to mount to write," +
			" unless the pod itself says readOnly" + setReadWrite}
	}
	var details map[string]any
	if err := decode(c, &details); err != nil {
		return Mapping{}, err
	}
	delete(details, "driver_volume_type") // one way to export has it among the details
	source := &corev1.FlexPersistentVolumeSource{
		Driver: w.FlexDriver, FSType: w.fsType(),
		Options: map[string]string{"driver_volume_type": c.Kind},
	}
	if w.Initiator != "" && strings.EqualFold(c.Kind, "iscsi") {
		source.Options["initiator_name"] = w.Initiator // by which the volume is exported
	}
	secret := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(details)) {
		text, err := optionText(name, details[name])
		switch {
		case err != nil:
			return Mapping{}, err
		case text == "":
		case isCoordinate(name, details[name], text):
			source.Options[name] = text
		default:
			secret[name] = []byte(text)
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

// isCoordinate reports whether a detail may stand on the PV. A list or an object may not: it may
// hold anything.
func isCoordinate(name string, value any, text string) bool {
	switch value.(type) {
	case string, bool, float64:
		hasForm := coordinates[name]
		return hasForm != nil && hasForm(text)
	default:
		return false
	}
}

// optionText returns a string as it is, nothing for null, and JSON for any other value. It refuses
// what no Secret can hold, and control characters: a driver may write a text into a file of lines.
func optionText(name string, value any) (string, error) {
	if problems := validation.IsConfigMapKey(name); len(problems) > 0 {
		return "", unsupported("the storage reports a detail %q of the connection that cannot be stored in a Secret: %s", name, problems[0])
	}
	if !arePrintable(value) {
		return "", unsupported("the storage reports a detail %q of the connection that has control characters", name)
	}
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

// arePrintable reports whether all texts in a value, which was read from JSON, are printable.
func arePrintable(value any) bool {
	switch v := value.(type) {
	case string:
		return isPrintable(v)
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !arePrintable(one) })
	case map[string]any:
		for name, one := range v {
			if !isPrintable(name) || !arePrintable(one) {
				return false
			}
		}
	}
	return true
}
