package cindertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// use is an attachment, in Cinder's JSON.
type use struct {
	ID       string         `json:"id"`
	Status   string         `json:"status"`
	Server   *string        `json:"instance"`
	VolumeID string         `json:"volume_id"`
	Attached string         `json:"attached_at"`
	Detached string         `json:"detached_at"`
	Mode     string         `json:"attach_mode"`
	Info     map[string]any `json:"connection_info"`

	// host and mountPoint are those of an attachment by os-attach.
	host, mountPoint string
}

// Attachments lists the IDs of the attachments, in the order of their creation.
func (s *Server) Attachments() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.uses))
}

// Attach makes an attachment without a server and without a request, and gives the volume the
// status that goes with the attachment's.
func (s *Server) Attach(volumeID, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, v := s.newUse(volumeID), s.volumes[volumeID]
	u.Status, v.Status = status, "reserved"
	if status == "attached" {
		v.Status, u.Info = "in-use", v.iscsi()
		u.Info["driver_volume_type"] = "iscsi"
	}
}

// AttachHost attaches a volume to a host without a server, as os-attach does.
func (s *Server) AttachHost(volumeID, host, mountPoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.newUse(volumeID)
	u.Status, u.host, u.mountPoint = "attached", sanitized(host), mountPoint
	s.volumes[volumeID].Status = "in-use"
}

// LeaveReserved makes an exported volume what images left that did not attach it to a host.
func (s *Server) LeaveReserved(volumeID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.usesOf(volumeID) {
		delete(s.uses, u.ID)
	}
	s.volumes[volumeID].Status = "attaching"
}

// DieAttaching makes the newest attachment what a Cinder leaves behind that is killed between the
// two writes that create it: one to a host is not finished, and its volume does not show it; any
// other does not exist, and its volume is reserved.
func (s *Server) DieAttaching() {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uses[slices.Max(slices.Collect(maps.Keys(s.uses)))]
	v := s.volumes[u.VolumeID]
	if u.mountPoint != "" {
		u.Status, u.host, u.mountPoint, v.Status = "attaching", "", "", "attaching"
		return
	}
	v.Status = "reserved"
	delete(s.uses, u.ID)
}

// AttachServer attaches a volume to a server, as Nova does.
func (s *Server) AttachServer(volumeID, server string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.newUse(volumeID)
	u.Status, u.Server = "attached", &server
	s.volumes[volumeID].Status = "in-use"
}

func (s *Server) newUse(volumeID string) *use {
	s.made++
	u := &use{
		ID: fmt.Sprintf("%08d-0000-4000-8000-00000000a77a", s.made), Status: "reserved", VolumeID: volumeID,
		Mode: "null", Info: map[string]any{},
	}
	s.uses[u.ID] = u
	return u
}

// usesOf returns the attachments of a volume, in the order of their creation.
func (s *Server) usesOf(volumeID string) []*use {
	var found []*use
	for _, id := range slices.Sorted(maps.Keys(s.uses)) {
		if u := s.uses[id]; u.VolumeID == volumeID {
			found = append(found, u)
		}
	}
	return found
}

// isAttached reports whether the volume's attach_status is attached, which its status need not say:
// an administrator can change the status alone, and so does a failure.
func (s *Server) isAttached(v *disk) bool {
	return v.attached || slices.ContainsFunc(s.usesOf(v.ID), func(u *use) bool { return u.Status == "attached" })
}

// statusAfterDetach returns the status of a volume by the attachments that are left. Failed ones do
// not count.
func (s *Server) statusAfterDetach(v *disk) string {
	status := "available"
	for _, u := range s.usesOf(v.ID) {
		switch {
		case u.Status == "attached":
			return "in-use"
		case u.Status == "attaching", u.Status == "reserved" && status != "attaching":
			status = u.Status
		}
	}
	return status
}

// guarded is the first release here that lets only services detach a volume of a server.
const guarded = 21

// isKeptForNova reports whether only a service may end an attachment.
func (s *Server) isKeptForNova(r *http.Request, u *use) bool {
	return s.Release >= guarded && u.Server != nil && r.Header.Get("X-Service-Roles") != "service"
}

func (s *Server) attachments(r *http.Request, parts []string) answer {
	switch path := strings.Join(parts, "/"); {
	case micro(r) < 27:
		return fault(http.StatusNotFound, "The resource could not be found.")
	case r.Method == http.MethodGet && (path == "" || path == "detail"):
		return s.listUses(r)
	case r.Method == http.MethodPost && path == "":
		return s.attach(r)
	default:
		return s.onUse(r, parts)
	}
}

func (s *Server) listUses(r *http.Request) answer {
	of := r.URL.Query().Get("volume_id")
	if of != "" && s.NoFilters && micro(r) >= 31 {
		return fault(http.StatusBadRequest, "Invalid filters volume_id are found in query options.")
	}
	found := []use{}
	for _, id := range slices.Sorted(maps.Keys(s.uses)) {
		if u := s.uses[id]; of == "" || u.VolumeID == of {
			found = append(found, *u)
		}
	}
	return answer{http.StatusOK, map[string]any{"attachments": found}}
}

func (s *Server) attach(r *http.Request) answer {
	var body struct {
		Attachment map[string]any `json:"attachment"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	id, _ := body.Attachment["volume_uuid"].(string)
	server, named := body.Attachment["instance_uuid"]
	instance, isText := server.(string)
	if refused := s.refuseServer(id, instance, named, isText); refused != nil {
		return *refused
	}
	v, ok := s.volumes[id]
	switch {
	case !ok:
		return fault(http.StatusNotFound, "Volume %s could not be found.", id)
	case strings.Contains(v.Status, "error"):
		return fault(http.StatusBadRequest, "Invalid volume: Volume attachments can not be created if the volume is in an error"+
			" state. The Volume %s currently has a status of: %s ", id, v.Status)
	case v.Status != "available" && v.Status != "downloading":
		return fault(http.StatusBadRequest, "Invalid volume: Volume %s status must be available or downloading to"+
			" reserve, but the current status is %s.", id, v.Status)
	}
	v.Status = "reserved"
	u := s.newUse(id)
	if named {
		u.Server = &instance
	}
	if connector, ok := body.Attachment["connector"].(map[string]any); ok {
		return u.connect(v, connector)
	}
	return answer{http.StatusOK, map[string]any{"attachment": *u}}
}

// attachedAt is when every attachment was completed.
const attachedAt = "2026-11-20T05:05:43.697616"

// xena is the first release with attachments without a server.
const xena = 19

// refuseServer returns the refusal of an attachment by the schema of the request, or nil.
func (s *Server) refuseServer(id, server string, named, isText bool) *answer {
	var refused answer
	switch {
	case !named && s.Release < xena:
		refused = fault(http.StatusBadRequest, "Invalid input for field/attribute attachment. Value: {'volume_uuid': '%s'}."+
			" 'instance_uuid' is a required property", id)
	case named && !isText:
		refused = fault(http.StatusBadRequest, "Invalid input for field/attribute instance_uuid. Value: None. None is not"+
			" of type 'string'")
	case named && server == "":
		refused = fault(http.StatusBadRequest, "Invalid input for field/attribute instance_uuid. Value: . '' is not a 'uuid'")
	default:
		return nil
	}
	return &refused
}

// onUse serves requests for one attachment.
func (s *Server) onUse(r *http.Request, parts []string) answer {
	u, ok := s.uses[parts[0]]
	if !ok {
		return fault(http.StatusNotFound, "Volume attachment could not be found with filter: attachment_id = %s.", parts[0])
	}
	v := s.volumes[u.VolumeID]
	switch {
	case r.Method == http.MethodGet:
		return answer{http.StatusOK, map[string]any{"attachment": *u}}
	case r.Method == http.MethodPut:
		return s.update(r, u, v)
	case r.Method == http.MethodDelete:
		return s.detach(r, u, v)
	case r.Method == http.MethodPost && len(parts) == 2 && micro(r) >= 44:
		u.Status, u.Attached, v.Status = "attached", attachedAt, "in-use"
		return answer{http.StatusNoContent, nil}
	default:
		return fault(http.StatusNotFound, "The resource could not be found.")
	}
}

func (s *Server) update(r *http.Request, u *use, v *disk) answer {
	var body struct {
		Attachment struct {
			Connector map[string]any `json:"connector"`
		} `json:"attachment"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	return u.connect(v, body.Attachment.Connector)
}

// connect exports the volume for the attachment. The answer shows the status that the attachment
// had before.
func (u *use) connect(v *disk, connector map[string]any) answer {
	kind, data, refused := v.export(connector)
	if refused != "" {
		return fault(http.StatusBadRequest, "%s", refused)
	}
	data["driver_volume_type"], data["attachment_id"] = kind, u.ID
	u.Info = data
	was := *u
	u.Status, v.Status = "attaching", "attaching"
	return answer{http.StatusOK, map[string]any{"attachment": was}}
}

func (s *Server) detach(r *http.Request, u *use, v *disk) answer {
	if s.isKeptForNova(r, u) {
		return erred()
	}
	delete(s.uses, u.ID)
	v.Status, v.exported = s.statusAfterDetach(v), v.exported && len(u.Info) == 0
	left := []use{}
	for _, other := range s.usesOf(v.ID) {
		left = append(left, *other)
	}
	return answer{http.StatusOK, map[string]any{"attachments": left}}
}

// erred is the answer to what Cinder refuses without saying so.
func erred() answer {
	return fault(http.StatusInternalServerError, "The server has either erred or is incapable of performing the requested"+
		" operation.")
}
