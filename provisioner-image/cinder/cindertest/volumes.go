package cindertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Volume types with a behaviour of their own. Any other name, except for the empty one, is unknown.
const (
	// TypePlain has no such behaviour.
	TypePlain = "plain"
	// TypeFull is accepted, but no backend has room for it.
	TypeFull = "full"
	// TypeEncrypted makes encrypted volumes.
	TypeEncrypted = "encrypted"
	// TypeFibre is reached by Fibre Channel, TypeRBD by Ceph, TypeNVMe by NVMe over TCP.
	TypeFibre = "fibre"
	TypeRBD   = "ceph"
	TypeNVMe  = "nvme"
	// TypeMultiattach is reached by Fibre Channel, by many clients.
	TypeMultiattach = "multiattach"
	// TypeNFS is reached by a kind of connection that no mapper supports.
	TypeNFS = "nfs"
)

// types lists all types, and the empty name for none.
func types() []string {
	return []string{"", TypePlain, TypeFull, TypeEncrypted, TypeFibre, TypeRBD, TypeNVMe, TypeMultiattach, TypeNFS}
}

// disk is a volume, in Cinder's JSON.
type disk struct {
	ID        string            `json:"id"`
	Status    string            `json:"status"`
	Size      int               `json:"size"`
	Zone      string            `json:"availability_zone"`
	Created   string            `json:"created_at"`
	Name      string            `json:"name"`
	Type      string            `json:"volume_type"`
	Metadata  map[string]string `json:"metadata"`
	Encrypted bool              `json:"encrypted"`
	Shared    bool              `json:"multiattach"`

	// Source and Snapshot are what the volume was cloned from.
	Source   string `json:"source_volid,omitempty"`
	Snapshot string `json:"snapshot_id,omitempty"`

	looks    int
	exported bool
	// before is the status before extending, and grow the new size.
	before string
	grow   int
}

func (v *disk) isFibre() bool { return v.Type == TypeFibre || v.Type == TypeMultiattach }

// View is a volume as a test sees it.
type View struct {
	ID, Name, Status, Type, Zone string
	SizeGiB                      int
	Metadata                     map[string]string
	Exported                     bool
	Source, Snapshot             string
}

// Volumes lists what exists, in the order of creation.
func (s *Server) Volumes() []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []View
	for _, id := range slices.Sorted(maps.Keys(s.volumes)) {
		v := s.volumes[id]
		all = append(all, View{v.ID, v.Name, v.Status, v.Type, v.Zone, v.Size, v.Metadata, v.exported, v.Source, v.Snapshot})
	}
	return all
}

// limits returns how much of the quota is used.
func (s *Server) limits() answer {
	gib := 0
	for _, v := range s.volumes {
		gib += v.Size
	}
	return answer{http.StatusOK, map[string]any{"limits": map[string]any{"rate": []any{}, "absolute": map[string]any{
		"maxTotalVolumes": s.Quota, "totalVolumesUsed": len(s.volumes), "totalGigabytesUsed": gib,
	}}}}
}

// SetStatus changes a volume's status without a request, as an administrator can.
func (s *Server) SetStatus(id, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volumes[id].Status = status
}

// Forget removes a volume without a request.
func (s *Server) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.volumes, id)
}

// LetTimePass completes everything that volumes take time for.
func (s *Server) LetTimePass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.volumes {
		s.pass(v)
	}
}

// Resize changes a volume's size without a request.
func (s *Server) Resize(id string, gib int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.volumes[id].Size = gib
}

// Add makes a volume without a request and returns its ID.
func (s *Server) Add(status string, metadata map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.add("outside", TypePlain, 1, metadata)
	v.Status = status
	return v.ID
}

func (s *Server) add(name, kind string, size int, metadata map[string]string) *disk {
	s.made++
	created := time.Date(2026, 11, 20, 5, 5, s.made, 0, time.UTC)
	v := &disk{
		ID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", s.made), Status: "creating", Size: size,
		Zone: "nova", Created: created.Format("2006-01-02T15:04:05.000000"), Name: name,
		Type: kind, Metadata: metadata, Encrypted: kind == TypeEncrypted, Shared: kind == TypeMultiattach,
	}
	s.volumes[v.ID] = v
	return v
}

func (s *Server) create(r *http.Request) answer {
	var body struct {
		Volume struct {
			Name     string            `json:"name"`
			Size     int               `json:"size"`
			Type     string            `json:"volume_type"`
			Zone     string            `json:"availability_zone"`
			Metadata map[string]string `json:"metadata"`
			Source   string            `json:"source_volid"`
			Snapshot string            `json:"snapshot_id"`
		} `json:"volume"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "The server could not comply with the request since it is either"+
			" malformed or otherwise incorrect.")
	}
	want := body.Volume
	switch {
	case !slices.Contains(types(), want.Type):
		return fault(http.StatusNotFound, "Volume type with name %s could not be found.", want.Type)
	case want.Zone != "" && want.Zone != "nova":
		return fault(http.StatusBadRequest, "Availability zone '%s' is invalid.", want.Zone)
	case want.Size < 1:
		return fault(http.StatusBadRequest, "Invalid input for field/attribute size. Value: %d. %d is less than"+
			" the minimum of 1", want.Size, want.Size)
	case len(s.volumes) >= s.Quota:
		return fault(http.StatusRequestEntityTooLarge, "VolumeLimitExceeded: Maximum number of volumes allowed"+
			" (%d) exceeded for quota 'volumes'.", s.Quota)
	}
	if refused := s.copies(want.Source, want.Snapshot, want.Size); refused != nil {
		return *refused
	}
	v := s.add(want.Name, want.Type, want.Size, want.Metadata)
	v.Source, v.Snapshot = want.Source, want.Snapshot
	return answer{http.StatusAccepted, map[string]any{"volume": v}}
}

// Snapshot is the one snapshot that exists.
const Snapshot = "0516d613-30d0-4013-bd9d-b1e37f3e38d3"

// copies returns the refusal of a clone, or nil.
func (s *Server) copies(source, snapshot string, size int) *answer {
	var refused answer
	from, ok := s.volumes[source]
	switch {
	case source != "" && !ok:
		refused = fault(http.StatusNotFound, "Volume %s could not be found.", source)
	case source != "" && size < from.Size:
		refused = fault(http.StatusBadRequest, "Invalid input received: Volume size '%d'GB cannot be smaller than original"+
			" volume size  %dGB. They must be >= original volume size.", size, from.Size)
	case snapshot != "" && snapshot != Snapshot:
		refused = fault(http.StatusNotFound, "Snapshot %s could not be found.", snapshot)
	default:
		return nil
	}
	return &refused
}

func (s *Server) setMetadata(r *http.Request, id string) answer {
	var body struct {
		Metadata map[string]string `json:"metadata"`
	}
	v, ok := s.volumes[id]
	if !ok {
		return fault(http.StatusNotFound, "Volume %s could not be found.", id)
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	v.Metadata = body.Metadata
	return answer{http.StatusOK, body}
}

// list returns one page.
func (s *Server) list(r *http.Request) answer {
	filter, ok := pairs(r.URL.Query().Get("metadata"))
	marker := r.URL.Query().Get("marker")
	found := []disk{}
	for _, id := range slices.Sorted(maps.Keys(s.volumes)) {
		if v := s.volumes[id]; ok && id > marker && has(v.Metadata, filter) {
			found = append(found, *v)
		}
	}
	body := map[string]any{"volumes": found}
	if s.Page > 0 && len(found) > s.Page {
		found = found[:s.Page]
		query := r.URL.Query()
		query.Set("marker", found[s.Page-1].ID)
		next := s.URL + r.URL.Path + "?" + query.Encode()
		body = map[string]any{"volumes": found, "volumes_links": []any{map[string]any{"rel": "next", "href": next}}}
	}
	return answer{http.StatusOK, body}
}

// pairs reads the filter {'k':'v'} as Cinder does: a filter that is no Python literal finds nothing, without an
// error.
func pairs(filter string) (map[string]string, bool) {
	if filter == "" {
		return nil, true
	}
	var m map[string]string
	err := json.Unmarshal([]byte(strings.ReplaceAll(filter, "'", `"`)), &m)
	return m, err == nil
}

func has(metadata, filter map[string]string) bool {
	for k, v := range filter {
		if metadata[k] != v {
			return false
		}
	}
	return true
}

// show returns the volume, and then lets some time pass for it.
func (s *Server) show(id string) answer {
	v, ok := s.volumes[id]
	if !ok {
		return fault(http.StatusNotFound, "Volume %s could not be found.", id)
	}
	now := *v
	v.looks++
	if v.looks >= s.Slow {
		s.pass(v)
	}
	return answer{http.StatusOK, map[string]any{"volume": now}}
}

func (s *Server) pass(v *disk) {
	switch {
	case v.Status == "creating" && v.Type == TypeFull:
		v.Status = "error"
	case v.Status == "creating", v.Status == "detaching":
		v.Status = "available"
	case v.Status == "extending":
		v.Status, v.Size = v.before, v.grow
	case v.Status == "deleting":
		delete(s.volumes, v.ID)
	}
}

func (s *Server) remove(id string) answer {
	v, ok := s.volumes[id]
	if !ok {
		return fault(http.StatusNotFound, "Volume %s could not be found.", id)
	}
	if !slices.Contains([]string{"available", "error", "error_restoring", "error_extending", "error_managing"}, v.Status) {
		return fault(http.StatusBadRequest, "Invalid volume: Volume status must be available or error or"+
			" error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a"+
			" group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.")
	}
	v.Status, v.looks, v.exported = "deleting", 0, false
	return answer{http.StatusAccepted, nil}
}

func (s *Server) messages(r *http.Request) answer {
	id := r.URL.Query().Get("resource_uuid")
	found := []map[string]any{}
	if v := s.volumes[id]; v != nil && v.Type == TypeFull {
		found = append(found, map[string]any{
			"id": "5072e44b-ffdf-4357-a0f9-e9b56073ef3d", "event_id": "VOLUME_VOLUME_001_003",
			"user_message":  "schedule allocate volume:Could not find any available weighted backend.",
			"message_level": "ERROR", "created_at": "2026-11-20T05:06:56.872640",
			"request_id": "req-58f4c51d-1217-4e02-ad83-ad31052457f1", "resource_type": "VOLUME", "resource_uuid": id,
		})
	}
	return answer{http.StatusOK, map[string]any{"messages": found}}
}
