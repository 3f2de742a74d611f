package credentials

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// FromConfig reads a login from a cloud config file. An unknown key is a fault: a misspelt one would be ignored
// silently. Error messages name keys and lines, never values.
func FromConfig(name string, data []byte, files Files) (Login, error) {
	f, err := readConfig(data)
	if err != nil {
		return Login{}, fmt.Errorf("cloud config %s: %w", name, err)
	}
	return f.login("cloud config "+name, files)
}

func readConfig(data []byte) (form, error) {
	var f form
	entries, err := parseINI(data)
	if err != nil {
		return f, err
	}
	var faults []error
	for _, e := range entries {
		faults = append(faults, f.set(e))
	}
	return f, errors.Join(faults...)
}

func (f *form) set(e entry) error {
	switch {
	case e.section == "global":
		return f.setGlobal(e)
	case (e.section == "blockstorage" || e.section == "cinder") && e.key == "endpoint":
		// The other spelling of [Global] cinder-endpoint.
		f.Endpoint = e.value
		return nil
	case e.section == "blockstorage" && slices.Contains(providersStorage, e.key):
		return nil
	case slices.Contains(providersSections, sectionWord(e.section)):
		return nil
	default:
		return fmt.Errorf("line %d: key %q in section [%s] is unknown", e.line, e.key, e.section)
	}
}

func (f *form) setGlobal(e entry) error {
	for _, known := range fields() {
		if known.key == e.key {
			*known.at(f) = e.value
			return nil
		}
	}
	return fmt.Errorf("line %d: key %q is unknown in [Global]", e.line, e.key)
}

// Sections and keys that only the cloud provider reads. The same file serves both programs.
var (
	providersSections = []string{"loadbalancer", "loadbalancerclass", "networking", "metadata", "route"}
	providersStorage  = []string{
		"bs-version", "trust-device-path", "ignore-volume-az", "ignore-volume-microversion", "node-volume-attach-limit",
		"rescan-on-resize",
	}
)

// sectionWord returns the section without its name, as in [LoadBalancerClass "internal"].
func sectionWord(section string) string {
	word, _, _ := strings.Cut(section, " ")
	return word
}
