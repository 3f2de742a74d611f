package mapper

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Mapping is a volume source, and the Secret to write before it, nil where it needs none.
type Mapping struct {
	Source corev1.PersistentVolumeSource
	Secret *corev1.Secret
}

// Mapper knows one kind of connection.
type Mapper interface {
	// Check says why this kind cannot keep what is wanted, as far as it can be known beforehand.
	Check(w Want) error
	// Map builds the source of what passed the check.
	Map(c volume.Connection, w Want) (Mapping, error)
}

// kinds is the one list of the connections that can be mapped, by Cinder's word for each.
var kinds = []struct {
	name   string
	mapper Mapper
}{
	{"iscsi", iscsi{}},
	{"fibre_channel", fibreChannel{}},
	{"rbd", rbd{}},
	{"nvmeof", nvmeof{}},
}

// find returns the mapper of a kind, or the one of every other kind where the class has a FlexVolume
// driver for it. Some backends write a kind in capitals.
func find(kind string, o Options) (Mapper, error) {
	for _, k := range kinds {
		if k.name == strings.ToLower(kind) {
			return k.mapper, nil
		}
	}
	if o.FlexDriver != "" {
		return flexVolume{}, nil
	}
	return nil, unfit("volumes of this class are connected by %q, which cannot be mapped to a volume source:"+
		" %s can, others by a FlexVolume driver (flex-driver)", kind, kindNames())
}

// kindNames lists the kinds as text: "a, b and c".
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
	if w.Kind != "" && !strings.EqualFold(w.Kind, c.Kind) {
		return Mapping{}, unfit("the class says that its volumes are connected by %q, the storage says %q", w.Kind, c.Kind)
	}
	m, err := find(c.Kind, w.Options)
	if err != nil {
		return Mapping{}, err
	}
	if err := m.Check(w); err != nil {
		return Mapping{}, err
	}
	var facts common
	if err := c.Decode(&facts); err != nil {
		return Mapping{}, err
	}
	if facts.Encrypted {
		return Mapping{}, unfit("the volume type encrypts its volumes, which only Nova can undo: choose a type without" +
			" encryption")
	}
	w.ReadOnly = facts.AccessMode == "ro" || w.onlyReads()
	return m.Map(c, w)
}

// common is what Cinder's manager adds to every backend's details.
type common struct {
	AccessMode string `json:"access_mode"`
	Encrypted  bool   `json:"encrypted"`
	// QoS is what Nova's hypervisor would enforce. Nodes cannot.
	QoS map[string]any `json:"qos_specs"`
}

// Unenforced names what the storage asks of whoever attaches the volume and no node does, or "".
func Unenforced(c volume.Connection) string {
	var facts common
	if c.Decode(&facts) != nil || len(facts.QoS) == 0 {
		return ""
	}
	return "front-end QoS of the volume type: only Nova limits a volume so; let the backend do it"
}

// Check refuses what could not be served, before anything is made: by the kind of connection where the
// class says which one it has, else by none of them.
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

// UnfitError says why a claim or a class cannot be served.
type UnfitError struct {
	// Claim is true where the claim asks for what no volume of this kind can do, and false where the
	// class leads to volumes that cannot be mounted.
	Claim  bool
	Reason string
}

// Error is the reason.
func (u *UnfitError) Error() string { return u.Reason }

// unfit is a fault of the class.
func unfit(format string, args ...any) error {
	return &UnfitError{Reason: fmt.Sprintf(format, args...)}
}
