package volume

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// AllowsZone reports whether the claim's volume may be in a zone.
func (s Spec) AllowsZone(zone string) bool {
	return len(s.Zones) == 0 || slices.Contains(s.Zones, zone)
}

// usesZone reports whether a volume in a zone is used.
func (s Spec) usesZone(zone string) bool { return s.AnyZone || s.AllowsZone(zone) }

// checkZone returns an error if the volume is where it may not be: in a zone that the storage chose
// instead of the one that it was asked for (allow_availability_zone_fallback of Cinder), or in that
// of the class's snapshot. Pods would be kept where they cannot reach the volume. A run that died
// before it could look leaves its volume to this one.
func (v Volume) checkZone(spec Spec) error {
	if spec.usesZone(v.Zone) {
		return nil
	}
	return &Error{
		Kind:  Misconfigured,
		Doing: "use volume " + v.ID,
		Said:  fmt.Sprintf("it is in zone %q, and must be in zone %s", v.Zone, anyOf(spec.Zones)),
		Err: errors.New("the storage does not have the zone, or the class's snapshot is elsewhere. Remedy: set availability to a zone of the storage;" +
			" or set it to ignore, if every node reaches every zone of the storage"),
	}
}

// anyOf names zones: "a" or "b".
func anyOf(zones []string) string {
	var quoted []string
	for _, zone := range zones {
		quoted = append(quoted, fmt.Sprintf("%q", zone))
	}
	return strings.Join(quoted, " or ")
}
