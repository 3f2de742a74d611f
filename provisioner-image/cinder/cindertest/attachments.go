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
}

// Attachments lists the IDs of the attachments, in the order of their creation.
func (s *Server) Attachments() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.uses))
}

// Attach makes an attachment without a server and without a request, and gives the volume the status that goes with
// the attachment's.
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
	if refused := s.refuseServer(id, server, named); refused != nil {
		return *refused
	}
	v, ok := s.volumes[id]
	if !ok {
		return fault(http.StatusNotFound, "Volume %s could not be found.", id)
	}
	if v.Status != "available" {
		return fault(http.StatusBadRequest, "Invalid volume: Volume %s status must be available or downloading to"+
			" reserve, but the current status is %s.", id, v.Status)
	}
	v.Status = "reserved"
	return answer{http.StatusOK, map[string]any{"attachment": *s.newUse(id)}}
}

// xena is the first release with attachments without a server.
const xena = 19

// refuseServer returns the refusal of an attachment by the schema of the request, or nil.
func (s *Server) refuseServer(id string, server any, named bool) *answer {
	var refused answer
	text, isText := server.(string)
	switch {
	case !named && s.Release < xena:
		refused = fault(http.StatusBadRequest, "Invalid input for field/attribute attachment. Value: {'volume_uuid': '%s'}."+
			" 'instance_uuid' is a required property", id)
	case named && !isText:
		refused = fault(http.StatusBadRequest, "Invalid input for field/attribute instance_uuid. Value: None. None is not"+
			" of type 'string'")
	case named && text == "":
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
		return s.connect(r, u, v)
	case r.Method == http.MethodDelete:
		delete(s.uses, u.ID)
		v.Status, v.exported = "available", false
		return answer{http.StatusOK, map[string]any{"attachments": []any{}}}
	case r.Method == http.MethodPost && len(parts) == 2 && micro(r) >= 44:
		u.Status, u.Attached, v.Status = "attached", "2026-11-20T05:05:43.697616", "in-use"
		return answer{http.StatusNoContent, nil}
	default:
		return fault(http.StatusNotFound, "The resource could not be found.")
	}
}

func (s *Server) connect(r *http.Request, u *use, v *disk) answer {
	var body struct {
		Attachment struct {
			Connector map[string]any `json:"connector"`
		} `json:"attachment"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	kind, data, refused := v.export(body.Attachment.Connector)
	if refused != "" {
		return fault(http.StatusBadRequest, "%s", refused)
	}
	data["driver_volume_type"], data["attachment_id"] = kind, u.ID
	// The answer shows the status that the attachment had before.
	u.Info = data
	was := *u
	u.Status, v.Status = "attaching", "attaching"
	return answer{http.StatusOK, map[string]any{"attachment": was}}
}
