package cindertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
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
	// TypeFar is of a backend in the zone ZoneFar.
	TypeFar = "far"
)

// types lists all types, and the empty name for none.
func types() []string {
	return []string{"", TypePlain, TypeFull, TypeEncrypted, TypeFibre, TypeRBD, TypeNVMe, TypeMultiattach, TypeNFS, TypeFar}
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

	// Source and Snapshot are what the volume was cloned from.
	Source   *string `json:"source_volid"`
	Snapshot *string `json:"snapshot_id"`

	Updated     *string    `json:"updated_at"`
	Description *string    `json:"description"`
	User        string     `json:"user_id"`
	Bootable    string     `json:"bootable"`
	Replication *string    `json:"replication_status"`
	Group       *string    `json:"consistencygroup_id"`
	Multiattach bool       `json:"multiattach"`
	Migration   *string    `json:"migration_status"`
	Attachments []shownUse `json:"attachments"`

	release int
	// attached is true if a client attached the volume without an attachment that it can see.
	attached bool
	looks    int
	exported bool
	// before is the status before extending, and grow the new size.
	before string
	grow   int
	// unsaid is the ID of a request to extend that no backend has room for, until a message says so.
	// listed: its messages have been listed without that one.
	unsaid string
	listed bool
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
		all = append(all, View{v.ID, v.Name, v.Status, v.Type, v.Zone, v.Size, v.Metadata, v.exported, text(v.Source), text(v.Snapshot)})
	}
	return all
}

// text returns what may be null in JSON.
func text(maybe *string) string {
	if maybe == nil {
		return ""
	}
	return *maybe
}

// orNull is the reverse of text.
func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// shownUse is an attachment as a volume shows it.
type shownUse struct {
	ID         string  `json:"id"`
	Attachment string  `json:"attachment_id"`
	VolumeID   string  `json:"volume_id"`
	Server     *string `json:"server_id"`
	Host       *string `json:"host_name"`
	Device     *string `json:"device"`
	Attached   string  `json:"attached_at"`
}

// shown returns the volume as Cinder shows it. Only completed attachments are shown.
func (s *Server) shown(v *disk) disk {
	now := *v
	now.Attachments = []shownUse{}
	for _, u := range s.usesOf(v.ID) {
		if u.Status == "attached" {
			host := orNull(u.host)
			if s.HidesHosts {
				host = nil
			}
			now.Attachments = append(now.Attachments, shownUse{v.ID, u.ID, v.ID, u.Server, host, orNull(u.mountPoint), u.Attached})
		}
	}
	return now
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
	for _, u := range s.usesOf(id) {
		delete(s.uses, u.ID)
	}
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
	return s.AddNamed("outside", status, metadata)
}

// AddNamed makes a volume with a name without a request and returns its ID.
func (s *Server) AddNamed(name, status string, metadata map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.add(name, TypePlain, 1, metadata)
	v.Status, v.attached = status, status == "in-use"
	return v.ID
}

func (s *Server) add(name, kind string, size int, metadata map[string]string) *disk {
	s.made++
	created := time.Now().UTC() //nolint:forbidigo // runs compare it with their own clock
	v := &disk{
		ID: fmt.Sprintf("%08d-0000-4000-8000-000000000000", s.made), Status: "creating", Size: size,
		Zone: Zone, Created: created.Format("2006-01-02T15:04:05.000000"), Name: name,
		Type: kind, Metadata: metadata, Encrypted: kind == TypeEncrypted, User: "admin", Bootable: "false", release: s.Release, Multiattach: kind == TypeMultiattach,
	}
	s.volumes[v.ID] = v
	return v
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
	query := r.URL.Query()
	filter, ok := pairs(query.Get("metadata"))
	if s.NoFilters {
		filter, ok = nil, true
	}
	marker := query.Get("marker")
	if marker != "" && s.volumes[marker] == nil {
		return fault(http.StatusNotFound, "Volume %s could not be found.", marker)
	}
	found := []disk{}
	for _, id := range slices.Sorted(maps.Keys(s.volumes)) {
		if v := s.volumes[id]; ok && id > marker && has(v.Metadata, filter) {
			found = append(found, s.shown(v))
		}
	}
	body := map[string]any{"volumes": found}
	if limit := s.limit(query.Get("limit")); limit > 0 && len(found) >= limit {
		query.Set("marker", found[limit-1].ID)
		body["volumes"] = found[:limit]
		body["volumes_links"] = []any{map[string]any{"rel": "next", "href": s.link(r) + "?" + query.Encode()}}
	}
	return answer{http.StatusOK, body}
}

// limit returns how many volumes a page may hold. Cinder links a full page to another, which may be
// empty.
func (s *Server) limit(asked string) int {
	limit, err := strconv.Atoi(asked)
	if err != nil || s.Page > 0 && limit > s.Page {
		return s.Page
	}
	return limit
}

// link returns the URL of a list, as Cinder takes it for its own.
func (s *Server) link(r *http.Request) string {
	if s.PublicEndpoint != "" {
		return s.PublicEndpoint + r.URL.Path
	}
	return "http://" + r.Host + r.URL.Path
}

// pairs reads the filter {'k':'v'} as Cinder does: a filter that is no Python literal finds
// nothing, without an error.
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
	now := s.shown(v)
	v.looks++
	if v.looks >= s.Slow {
		s.pass(v)
	}
	return answer{http.StatusOK, map[string]any{"volume": now}}
}

func (s *Server) pass(v *disk) {
	switch {
	case v.Status == "creating" && (v.Type == TypeFull || (v.Type == TypeFar) != (v.Zone == ZoneFar)):
		s.say(v.ID, "VOLUME_VOLUME_001_003", "schedule allocate volume:"+noRoom, "req-58f4c51d-1217-4e02-ad83-ad31052457f1")
		v.Status = "error"
	case v.Status == "creating", v.Status == "detaching":
		v.Status = "available"
	case v.Status == "extending" && v.unsaid != "":
		v.Status = v.before
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
	deletable := []string{"available", "error", "error_restoring", "error_extending", "error_managing"}
	if !slices.Contains(deletable, v.Status) || s.isAttached(v) || len(s.snapshotsOf(id)) > 0 {
		return fault(http.StatusBadRequest, "Invalid volume: Volume status must be available or error or"+
			" error_restoring or error_extending or error_managing and must not be migrating, attached, belong to a"+
			" group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.")
	}
	v.Status, v.looks, v.exported = "deleting", 0, false
	return answer{http.StatusAccepted, nil}
}
