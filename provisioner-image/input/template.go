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

// volumeName returns the volume's name in Cinder. Names need not be unique there: volumes are found
// by their metadata.
func volumeName(r contract.Request, c class) (string, error) {
	if c.name == "" {
		return r.PVName, nil
	}
	name, err := expandTemplate("volume-name", c.name, r, c)
	return strings.TrimSpace(name), err // as Cinder does (validate_name_and_description in cinder/api/openstack/wsgi.py)
}

// metadata returns the volume's metadata: cluster, claim and PV, and what the class adds.
func metadata(r contract.Request, c class) (map[string]string, error) {
	m, err := classMetadata(r, c)
	m[volume.KeyUID] = r.UID
	m[keyNamespace] = searchable(r.Namespace)
	m[keyName] = searchable(r.Name)
	m[keyPV] = searchable(r.PVName)
	m[keyClass] = searchable(r.Class)
	if c.cluster != "" {
		m[volume.KeyCluster] = searchable(c.cluster)
	}
	return m, err
}

// classMetadata returns what the class adds to a volume's metadata: "key=value, key=value".
func classMetadata(r contract.Request, c class) (map[string]string, error) {
	m := map[string]string{}
	var faults []error
	for _, pair := range splitList(c.metadata) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" || strings.HasPrefix(key, contract.Domain) {
			faults = append(faults, fmt.Errorf("property volume-metadata: %q must have the form KEY=VALUE, with a key that this image does not use itself", pair))
			continue
		}
		text, err := expandTemplate("volume-metadata", value, r, c)
		faults = append(faults, err)
		m[searchable(key)] = text
	}
	return m, errors.Join(faults...)
}

var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// expandTemplate replaces the placeholders of a template. An unknown placeholder is a fault.
func expandTemplate(property, template string, r contract.Request, c class) (string, error) {
	words := placeholders(r, c)
	var faults []error
	text := placeholder.ReplaceAllStringFunc(template, func(name string) string {
		word, ok := words[name]
		if !ok {
			faults = append(faults, fmt.Errorf("property %s: placeholder %s is unknown", property, name))
		}
		return word
	})
	return searchable(text), errors.Join(faults...)
}

// placeholders returns the placeholders of a template with their values.
func placeholders(r contract.Request, c class) map[string]string {
	return map[string]string{
		"{claim-name}":      r.Name,
		"{claim-namespace}": r.Namespace,
		"{claim-uid}":       r.UID,
		"{pv-name}":         r.PVName,
		"{storage-class}":   r.Class,
		"{cluster}":         c.cluster,
	}
}

// searchable replaces the characters that Cinder's filters cannot search for: the filters read
// values as Python literals, and find nothing where there is a quote or a backslash.
func searchable(value string) string {
	value = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || strings.ContainsRune(`'"\`, r) {
			return '_'
		}
		return r
	}, value)
	return value[:min(len(value), maxValue)]
}
