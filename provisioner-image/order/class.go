package order

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// class is what the StorageClass's parameters and the config's properties say.
type class struct {
	volumeType, zone, fsType string
	initiator, host, ip      string
	cluster                  string
	cloudConfig              string
}

// SharedInitiator is the name by which all nodes log in to iSCSI targets, unless the class has its own.
const SharedInitiator = "iqn.2026-11.io.flex-provisioner:nodes"

// properties is the one list of what is understood.
func (c *class) properties() map[string]*string {
	return map[string]*string{
		"type":         &c.volumeType,
		"availability": &c.zone,
		"fsType":       &c.fsType,
		"initiator":    &c.initiator,
		"host":         &c.host,
		"ip":           &c.ip,
		"cluster":      &c.cluster,
		"cloud-config": &c.cloudConfig,
	}
}

// readClass refuses properties that nobody reads: a misspelt type would give the default one silently.
func readClass(given map[string]string) (class, error) {
	c := class{initiator: SharedInitiator, host: "flex-provisioner"}
	known := c.properties()
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at, ok := known[name]
		if !ok {
			faults = append(faults, fmt.Errorf("property %q is unknown; this image reads %s",
				name, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
			continue
		}
		*at = given[name]
	}
	return c, errors.Join(faults...)
}
