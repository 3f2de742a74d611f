package mapper

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Mapping is a volume source, and the Secret that must exist before it, nil where the source needs
// none.
type Mapping struct {
	Source corev1.PersistentVolumeSource
	Secret *corev1.Secret
	// MountOptions are those of the class, and those that the volume needs.
	MountOptions []string
	// Warnings are for the administrator: what the source cannot use of what the storage offers.
	Warnings []string
}

// Mapper knows one kind of connection.
type Mapper interface {
	// Check returns an error if this kind of connection cannot do what is wanted, as far as that is
	// known before the volume exists.
	Check(w Want) error
	// Map builds the source. Check has passed.
	Map(c volume.Connection, w Want) (Mapping, error)
}

// kinds is the one list of the connections that can be mapped, by Cinder's name for each.
var kinds = []struct {
	name   string
	mapper Mapper
}{
	{"iscsi", iscsi{}},
	{"fibre_channel", fibreChannel{}},
	{"rbd", rbd{}},
	{"nvmeof", nvmeof{}},
}

// find returns the mapper of a kind of connection. If the class names a FlexVolume driver, that
// mounts the kind that the class names, too, and every kind that is not in the list. Some backends
// write a kind in capitals.
func find(kind string, o Options) (Mapper, error) {
	if o.FlexDriver != "" && strings.EqualFold(kind, o.Kind) {
		return flexVolume{}, nil
	}
	for _, k := range kinds {
		if k.name == strings.ToLower(kind) {
			return k.mapper, nil
		}
	}
	if o.FlexDriver != "" {
		return flexVolume{}, nil
	}
	return nil, unsupported("volumes of this class are connected by %q, which is not supported: this image supports"+
		" %s, and others by a FlexVolume driver (flex-driver)", kind, kindNames())
}

// kindNames returns the kinds as text: "a, b and c".
func kindNames() string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Map builds the source of a connection.
func Map(c volume.Connection, w Want) (Mapping, error) {
	if !wordForm.MatchString(c.Kind) {
		return Mapping{}, unsupported("the storage reports the kind of connection %q, which is not a valid name", c.Kind)
	}
	if w.Kind != "" && !strings.EqualFold(w.Kind, c.Kind) {
		return Mapping{}, unsupported("volumes are connected by %q according to the class, and by %q according to the storage", w.Kind, c.Kind)
	}
	m, err := find(c.Kind, w.Options)
	if err != nil {
		return Mapping{}, err
	}
	if err := m.Check(w); err != nil {
		return Mapping{}, err
	}
	readOnly, err := isReadOnly(c)
	if err != nil {
		return Mapping{}, err
	}
	if readOnly {
		if err := w.checkMarked(); err != nil {
			return Mapping{}, err
		}
	}
	w.ReadOnly = readOnly || w.onlyReads()
	mapping, err := m.Map(c, w)
	mapping.MountOptions = w.mountOptions()
	return mapping, err
}

// isReadOnly reports whether the storage allows nodes only to read. It refuses an encrypted volume,
// which nodes cannot read.
func isReadOnly(c volume.Connection) (bool, error) {
	var facts common
	if err := decode(c, &facts); err != nil {
		return false, err
	}
	if facts.Encrypted {
		return false, errEncrypted
	}
	return facts.AccessMode == "ro", nil
}

var errEncrypted = unsupported("the volume type encrypts its volumes, which only Nova can decrypt: choose a type without encryption")

// common holds what Cinder's manager adds to the details of every backend.
type common struct {
	AccessMode word `json:"access_mode"`
	Encrypted  bool `json:"encrypted"`
	// QoS holds limits that only Nova's hypervisor enforces. None of its texts is used.
	QoS map[string]any `json:"qos_specs"`
}

// Unenforced returns what the storage asks of the client and nodes do not enforce, or "".
func Unenforced(c volume.Connection) string {
	var facts common
	if c.Decode(&facts) != nil || len(facts.QoS) == 0 {
		return ""
	}
	return "the volume type has front-end QoS, which only Nova enforces: use back-end QoS"
}

// Check refuses before anything is made what no volume of the class can do. If the class does not
// name its kind of connection, it refuses only what every kind refuses.
func Check(w Want) error {
	if w.Kind != "" {
		m, err := find(w.Kind, w.Options)
		if err != nil {
			return err
		}
		return m.Check(w)
	}
	var faults []error
	for _, k := range kinds {
		err := k.mapper.Check(w)
		if err == nil {
			return nil
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// UnsupportedError says why a claim or a class is not supported.
type UnsupportedError struct {
	// Claim is true if the claim asks for what no volume of this kind can do, and false if the
	// class's volumes cannot be mounted.
	Claim  bool
	Reason string
}

// Error returns the reason.
func (u *UnsupportedError) Error() string { return u.Reason }

// mostWays is more than an array has ports. What a storage reports is read in time that grows with the
// square of it.
const mostWays = 64

// checkWays refuses a connection of too many portals or ports.
func checkWays(n int) error {
	if n > mostWays {
		return unsupported("the storage reports %d portals or ports of the volume, and no more than %d are read", n, mostWays)
	}
	return nil
}

// unsupported returns a fault of the class.
func unsupported(format string, args ...any) error {
	return &UnsupportedError{Reason: fmt.Sprintf(format, args...)}
}
