package cloud

import (
	"errors"
	"fmt"
	"slices"
)

// FromConfig reads a login from a cloud config file. A key that nobody reads is a fault: a
// misspelt one would be lost silently. Messages name keys and lines, never values.
func FromConfig(name string, data []byte) (Login, error) {
	var l Login
	entries, err := parseINI(data)
	if err != nil {
		return l, fmt.Errorf("cloud config %s: %w", name, err)
	}
	var faults []error
	for _, e := range entries {
		faults = append(faults, l.set(e))
	}
	if err := errors.Join(faults...); err != nil {
		return l, fmt.Errorf("cloud config %s: %w", name, err)
	}
	return l, l.check("cloud config " + name)
}

func (l *Login) set(e entry) error {
	if e.section != "global" {
		return fmt.Errorf("line %d: section [%s] is unknown, only [Global] is read", e.line, e.section)
	}
	for _, f := range fields() {
		if slices.Contains(f.keys, e.key) {
			*f.at(l) = e.value
			return nil
		}
	}
	return fmt.Errorf("line %d: key %q is unknown in [Global]", e.line, e.key)
}
