package credentials

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/gcfg.v1"
)

// config is what is read of a cloud config. Global has an entry for each [Global "name"]; that of
// [Global] is "".
type config struct {
	Global map[string]*form
	// The endpoint of these sections is the other spelling of [Global] cinder-endpoint.
	BlockStorage, Cinder struct{ Endpoint string }
}

// FromConfig reads a login from a cloud config file, with the parser of the cloud provider, so that
// a file of the cloud provider means the same here. What is not read is a warning. Error messages
// name keys and lines, never values. Where the file holds several clouds, which names one of them.
func FromConfig(name string, data []byte, which string, files Files) (Login, error) {
	name = "cloud config " + name
	var c config
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	err := gcfg.ReadInto(&c, bytes.NewReader(data))
	if fatal := gcfg.FatalOnly(err); fatal != nil {
		return Login{}, fmt.Errorf("%s: %w", name, parserFault(fatal))
	}
	warnings := append(parserWarnings(name, data, err), commentWarnings(name, data)...)
	f, err := c.pick(which)
	if err != nil {
		return Login{}, withWarnings(fmt.Errorf("%s: %w", name, err), warnings)
	}
	f.Endpoint = cmp.Or(f.Endpoint, c.BlockStorage.Endpoint, c.Cinder.Endpoint)
	f.Warnings = warnings
	return f.login(name, files)
}

// pick returns the section of a cloud. A name also names the cloud of the clouds.yaml that [Global]
// uses.
func (c config) pick(which string) (form, error) {
	named := slices.DeleteFunc(slices.Sorted(maps.Keys(c.Global)), func(name string) bool { return name == "" })
	if which == "" && len(named) == 1 && c.Global[""] == nil {
		which = named[0]
	}
	if section := c.Global[which]; section != nil {
		return *section, nil
	}
	if len(named) > 0 {
		return form{}, fmt.Errorf("it has no section %s; it has %s: name one of them in the property cloud",
			sectionOf("Global", which), headers(named))
	}
	var f form
	if section := c.Global[""]; section != nil {
		f = *section
	}
	f.Cloud = cmp.Or(f.Cloud, which)
	return f, nil
}

// sectionOf returns a section's header.
func sectionOf(section, sub string) string {
	if sub == "" {
		return "[" + section + "]"
	}
	return fmt.Sprintf("[%s %q]", section, sub)
}

func headers(names []string) string {
	var out []string
	for _, name := range names {
		out = append(out, sectionOf("Global", name))
	}
	return strings.Join(out, ", ")
}
