package input

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// maxValue is Cinder's limit for a name, a metadata key and a metadata value.
const maxValue = 255

// volumeName is the volume's name in Cinder, where names need not be unique: volumes are found by
// their metadata.
func volumeName(r contract.Request, c class) (string, error) {
	if c.name == "" {
		return r.PVName, nil
	}
	return expand("volume-name", c.name, r, c)
}

// metadata names cluster, claim and PV, and holds what the class adds: "key=value, key=value".
func metadata(r contract.Request, c class) (map[string]string, error) {
	m := map[string]string{}
	var faults []error
	for _, pair := range list(c.metadata) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" || strings.HasPrefix(key, contract.Domain) {
			faults = append(faults, fmt.Errorf("property volume-metadata: %q is not KEY=VALUE, or the key is ours", pair))
			continue
		}
		text, err := expand("volume-metadata", value, r, c)
		faults = append(faults, err)
		m[clean(key)] = text
	}
	m[volume.KeyUID] = r.UID
	m[keyNamespace] = clean(r.Namespace)
	m[keyName] = clean(r.Name)
	m[keyPV] = clean(r.PVName)
	if c.cluster != "" {
		m[volume.KeyCluster] = clean(c.cluster)
	}
	return m, errors.Join(faults...)
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// expand puts the claim's words into a template. A placeholder that nobody knows is a fault.
func expand(property, template string, r contract.Request, c class) (string, error) {
	words := map[string]string{
		"{claim-name}":      r.Name,
		"{claim-namespace}": r.Namespace,
		"{claim-uid}":       r.UID,
		"{pv-name}":         r.PVName,
		"{storage-class}":   r.Class,
		"{cluster}":         c.cluster,
	}
	var faults []error
	text := placeholder.ReplaceAllStringFunc(template, func(name string) string {
		word, ok := words[name]
		if !ok {
			faults = append(faults, fmt.Errorf("property %s: placeholder %s is unknown", property, name))
		}
		return word
	})
	return clean(text), errors.Join(faults...)
}

// clean keeps what Cinder's filters can search for: they read values as Python literals, and a quote
// or a backslash makes them find nothing.
func clean(value string) string {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`'"\`, r) {
			return '_'
		}
		return r
	}, value)
	return value[:min(len(value), maxValue)]
}
