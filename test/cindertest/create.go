package cindertest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

func (s *Server) create(r *http.Request) answer {
	var body struct {
		Volume wish `json:"volume"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "The server could not comply with the request since it is either"+
			" malformed or otherwise incorrect.")
	}
	want := body.Volume
	if from := s.volumes[want.Source]; want.Size == nil && from != nil {
		want.Size = &from.Size
	}
	zone := s.zoneOf(want)
	for _, check := range []func(wish) *answer{s.refuseWish, s.refuseSource, s.refuseZone, s.refuseQuota} {
		if refused := check(want); refused != nil {
			return *refused
		}
	}
	v := s.add(strings.TrimSpace(want.Name), want.Type, *want.Size, want.Metadata)
	v.Zone = zone
	v.Source, v.Snapshot = orNull(want.Source), orNull(want.Snapshot)
	return answer{http.StatusAccepted, map[string]any{"volume": s.shown(v)}}
}

// wish is a volume that is asked for. Without a size a clone gets its source's.
type wish struct {
	Name     string            `json:"name"`
	Size     *int              `json:"size"`
	Type     string            `json:"volume_type"`
	Zone     string            `json:"availability_zone"`
	Metadata map[string]string `json:"metadata"`
	Source   string            `json:"source_volid"`
	Snapshot string            `json:"snapshot_id"`
}

// refuseWish returns the refusal of what does not exist, or of a size, or nil.
func (s *Server) refuseWish(want wish) *answer {
	var refused answer
	switch {
	case !slices.Contains(types(), want.Type):
		refused = fault(http.StatusNotFound, "Volume type with name %s could not be found.", want.Type)
	case want.Size == nil:
		refused = fault(http.StatusBadRequest, "The server could not comply with the request since it is"+
			" either malformed or otherwise incorrect.")
	case *want.Size < 1:
		refused = fault(http.StatusBadRequest, "Invalid input for field/attribute size. Value: %d. %d is less than"+
			" the minimum of 1", *want.Size, *want.Size)
	default:
		return s.refuseSize(want.Type, *want.Size)
	}
	return &refused
}

// The zones that exist. Zone is where volumes are made that ask for none. In ZoneFar only TypeFar
// has a backend, and it has none elsewhere.
const (
	Zone    = "nova"
	ZoneFar = "far"
)

// zoneOf returns where a volume is made (_extract_availability_zones in
// cinder/volume/flows/api/create_volume.py).
func (s *Server) zoneOf(want wish) string {
	zone := cmp.Or(want.Zone, s.zoneOfSource(want), Zone)
	if s.ZoneFallback && zone != Zone && zone != ZoneFar {
		return Zone
	}
	return zone
}

// zoneOfSource returns the zone of what is to be cloned, or "".
func (s *Server) zoneOfSource(want wish) string {
	switch from := s.volumes[want.Source]; {
	case want.Snapshot != "":
		return Zone
	case from != nil:
		return from.Zone
	default:
		return ""
	}
}

// refuseZone returns the refusal of a zone that does not exist, or in which no clone of this source
// is made, or nil.
func (s *Server) refuseZone(want wish) *answer {
	var refused answer
	switch zone, from := s.zoneOf(want), s.zoneOfSource(want); {
	case zone != Zone && zone != ZoneFar:
		refused = fault(http.StatusBadRequest, "Availability zone '%s' is invalid.", zone)
	case s.ClonesAnywhere || from == "" || from == zone:
		return nil
	case want.Snapshot != "":
		refused = fault(http.StatusBadRequest, "Invalid input received: Volume must be in the same availability zone as the snapshot")
	default:
		refused = fault(http.StatusBadRequest, "Invalid input received: Volume must be in the same availability zone as the source volume")
	}
	return &refused
}

// refuseQuota returns the refusal of one volume more than the quota allows, or nil.
func (s *Server) refuseQuota(wish) *answer {
	if len(s.volumes) < s.Quota {
		return nil
	}
	refused := fault(http.StatusRequestEntityTooLarge, "VolumeLimitExceeded: Maximum number of volumes allowed"+
		" (%d) exceeded for quota 'volumes'.", s.Quota)
	return &refused
}

// Snapshot is the one snapshot that exists, of a volume of 1 GiB.
const Snapshot = "0516d613-30d0-4013-bd9d-b1e37f3e38d3"

// refuseSource returns the refusal of a clone, or nil.
func (s *Server) refuseSource(want wish) *answer {
	var refused answer
	from, ok := s.volumes[want.Source]
	switch {
	case want.Source != "" && !ok:
		refused = fault(http.StatusNotFound, "Volume %s could not be found.", want.Source)
	case want.Source != "" && from.Status != "available" && from.Status != "in-use":
		refused = fault(http.StatusBadRequest, "Invalid volume: Originating source volume status must be one of 'available,"+
			" in-use' values")
	case want.Source != "" && *want.Size < from.Size:
		refused = fault(http.StatusBadRequest, "Invalid input received: Volume size '%d'GB cannot be smaller than original"+
			" volume size  %dGB. They must be >= original volume size.", *want.Size, from.Size)
	case want.Snapshot != "" && want.Snapshot != Snapshot:
		refused = fault(http.StatusNotFound, "Snapshot %s could not be found.", want.Snapshot)
	default:
		return nil
	}
	return &refused
}
