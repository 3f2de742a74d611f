package cindertest

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// args are the arguments of an action. A connector that is not there is not the same as an empty
// one.
type args struct {
	Connector *map[string]any `json:"connector"`
	NewSize   int             `json:"new_size"`
	// Host is nil if the request does not name one.
	Host       *string `json:"host_name"`
	Mountpoint string  `json:"mountpoint"`
	Mode       string  `json:"mode"`
	Attachment string  `json:"attachment_id"`
	Status     string  `json:"status"`
}

func (s *Server) action(r *http.Request, id string) answer {
	v, ok := s.volumes[id]
	if !ok {
		return fault(http.StatusNotFound, "Volume %s could not be found.", id)
	}
	var body map[string]args
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	for name, with := range body {
		switch name {
		case "os-reserve":
			return v.reserve()
		case "os-unreserve":
			s.endReservation(v)
			return answer{http.StatusAccepted, nil}
		case "os-initialize_connection":
			return v.initialize(with.Connector)
		case "os-extend":
			return s.extend(v, with.NewSize, micro(r))
		case "os-terminate_connection":
			return s.terminate(r, v)
		case "os-reset_status":
			v.Status = with.Status
			return answer{http.StatusAccepted, nil}
		}
		return s.hostAction(r, v, name, with)
	}
	return fault(http.StatusBadRequest, "There is no such action: %v", body)
}

func (s *Server) hostAction(r *http.Request, v *disk, name string, with args) answer {
	switch name {
	case "os-attach":
		return s.attachHost(v, with)
	case "os-detach":
		return s.detachHost(r, v, with.Attachment)
	default:
		return fault(http.StatusBadRequest, "There is no such action: %s", name)
	}
}

// terminate keeps the export, as tgt does; what changes is the reservation. Of several attachments
// Cinder does not know which one is meant.
func (s *Server) terminate(r *http.Request, v *disk) answer {
	uses := s.usesOf(v.ID)
	if s.Release >= guarded && len(uses) > 1 {
		return ambiguous()
	}
	for _, u := range uses {
		if s.isKeptForNova(r, u) {
			return erred()
		}
	}
	s.endReservation(v)
	return answer{http.StatusAccepted, nil}
}

// ambiguous is the refusal of a request that does not say which attachment it means.
func ambiguous() answer {
	return fault(http.StatusConflict, "Detach volume from instance using the Compute API")
}

// attachHost completes the older workflow: the volume is in use without an instance. The same host
// may ask again.
func (s *Server) attachHost(v *disk, with args) answer {
	switch {
	case with.Host == nil || with.Mountpoint == "":
		return fault(http.StatusBadRequest, "Invalid input for field/attribute os-attach. 'mountpoint' is a required property")
	case v.Metadata["readonly"] == "True" && with.Mode != "ro":
		return fault(http.StatusBadRequest, "Invalid attaching mode '%s' for volume %s.", with.Mode, v.ID)
	}
	host := sanitized(*with.Host)
	if slices.ContainsFunc(s.usesOf(v.ID), func(u *use) bool { return u.Server == nil && u.host == host && u.Status == "attached" }) {
		v.Status = "in-use"
		return answer{http.StatusAccepted, nil}
	}
	if v.Status == "in-use" && !v.Multiattach {
		return fault(http.StatusBadRequest, "Error attaching volume - InvalidVolume: Invalid volume: volume is already attached"+
			" and multiple attachments are not enabled")
	}
	u := s.newUse(v.ID)
	u.Status, u.Attached, u.Mode, u.host, u.mountPoint, v.Status = "attached", attachedAt, with.Mode, host, with.Mountpoint, "in-use"
	return answer{http.StatusAccepted, nil}
}

// sanitized returns a host's name as Cinder keeps it.
func sanitized(host string) string {
	host = strings.NewReplacer(" ", "-", "_", "-").Replace(host)
	return strings.Trim(strings.ToLower(notInHosts.ReplaceAllString(host, "")), ".-")
}

var notInHosts = regexp.MustCompile(`[^\w.-]+`)

// detachHost ends what attachHost began, and removes the export. Of several attachments the request
// has to name one. Without any the volume is available again, whatever its status was.
func (s *Server) detachHost(r *http.Request, v *disk, id string) answer {
	uses := s.usesOf(v.ID)
	switch isAmbiguous := id == "" && len(uses) > 1; {
	case isAmbiguous && s.Release >= guarded:
		return ambiguous()
	case isAmbiguous:
		return fault(http.StatusBadRequest, "Error detaching volume - InvalidVolume: Invalid volume: Detach volume failed: More"+
			" than one attachment, but no attachment_id provided.")
	}
	for _, u := range slices.DeleteFunc(uses, func(u *use) bool { return id != "" && u.ID != id }) {
		if s.isKeptForNova(r, u) && len(u.Info) > 0 {
			return erred()
		}
		delete(s.uses, u.ID)
		v.exported = false
	}
	v.Status, v.attached = s.statusAfterHost(v), false
	return answer{http.StatusAccepted, nil}
}

// statusAfterHost is statusAfterDetach, but an older Cinder does not look at the statuses of the
// attachments that are left.
func (s *Server) statusAfterHost(v *disk) string {
	if s.Release < xena && len(s.usesOf(v.ID)) > 0 {
		return "in-use"
	}
	return s.statusAfterDetach(v)
}

func (v *disk) reserve() answer {
	if v.Status != "available" {
		return fault(http.StatusBadRequest, "Invalid volume: Volume status must be available to reserve, but the"+
			" status is %s.", v.Status)
	}
	v.Status = "attaching"
	return answer{http.StatusAccepted, nil}
}

// extend refuses a size that the type forbids before it looks at the status, as Cinder does, and a
// volume in use to clients of an older microversion.
func (s *Server) extend(v *disk, size, micro int) answer {
	expected := "available"
	if v.Status == "in-use" && micro >= 42 {
		expected = "in-use"
	}
	switch refused := s.refuseSize(v.Type, size); {
	case size <= v.Size:
		return fault(http.StatusBadRequest, "Invalid input received: New size for extend must be greater than current size."+
			" (current: %d, extended: %d).", v.Size, size)
	case refused != nil && refused.status == http.StatusBadRequest:
		return *refused
	case v.Status != expected:
		return fault(http.StatusBadRequest, "Invalid volume: Volume %s status must be '{'status': '%s'}' to extend,"+
			" currently %s.", v.ID, expected, v.Status)
	case refused != nil:
		return *refused
	}
	v.before, v.grow, v.looks = v.Status, size, 0
	if size > s.Room {
		v.unsaid, v.listed = s.requestID(), false
	}
	v.Status = "extending"
	return answer{http.StatusAccepted, nil}
}

// refuseSize returns the refusal of a size, or nil: by the type (400), or by the project's limit of
// one volume (413).
func (s *Server) refuseSize(kind string, size int) *answer {
	var refused answer
	switch {
	case s.MaxSize > 0 && size > s.MaxSize:
		refused = fault(http.StatusBadRequest, "Invalid input received: Specified volume size of '%d' is greater than the"+
			" maximum allowable size of '%d' for volume type '%s'.", size, s.MaxSize, kind)
	case s.VolumeLimit > 0 && size > s.VolumeLimit:
		refused = fault(http.StatusRequestEntityTooLarge, "VolumeSizeExceedsLimit: Requested volume size %dG is larger than"+
			" maximum allowed limit %dG.", size, s.VolumeLimit)
	default:
		return nil
	}
	return &refused
}

// endReservation ends a reservation. Any other volume stays as it is.
func (s *Server) endReservation(v *disk) {
	if v.Status != "attaching" {
		return
	}
	v.Status = "available"
	if len(s.usesOf(v.ID)) > 0 {
		v.Status = "in-use"
	}
}

// Password returns the CHAP password of a volume, which never changes.
func Password(id string) string { return "chap-" + id[:8] + "-pw" }

func (v *disk) initialize(connector *map[string]any) answer {
	if connector == nil {
		return fault(http.StatusBadRequest, "Invalid input for field/attribute os-initialize_connection. Value: {}."+
			" 'connector' is a required property")
	}
	kind, data, refused := v.export(*connector)
	if refused != "" {
		return fault(http.StatusBadRequest, "%s", refused)
	}
	info := map[string]any{"driver_volume_type": kind, "data": data}
	if v.release >= antelope {
		info["enforce_multipath"] = false
	}
	return answer{http.StatusOK, map[string]any{"connection_info": info}}
}

// export returns how to reach the volume, or why it cannot be reached.
func (v *disk) export(connector map[string]any) (kind string, data map[string]any, refused string) {
	const lacks = "Invalid input received: Connector doesn't have required information: "
	switch needed, _ := connector["initiator"].(string); {
	case v.Type == TypeRBD:
		v.exported = true
		return "rbd", v.rbd(), ""
	case v.isFibre() && connector["wwpns"] == nil:
		return "", nil, lacks + "wwpns"
	case v.isFibre():
		v.exported = true
		return "fibre_channel", v.fibre(), ""
	case needed == "":
		return "", nil, lacks + "initiator"
	case v.Type == TypeNVMe:
		v.exported = true
		return "nvmeof", v.nvme(), ""
	case v.Type == TypeNFS:
		return "nfs", map[string]any{"export": "127.0.0.1:/srv/cinder", "name": "volume-" + v.ID}, ""
	default:
		v.exported = true
		return "iscsi", v.portals(connector["multipath"] == true), ""
	}
}
