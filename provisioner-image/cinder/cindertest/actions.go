package cindertest

import (
	"encoding/json"
	"net/http"
)

func (s *Server) action(r *http.Request, id string) answer {
	v, ok := s.volumes[id]
	if !ok {
		return fault(http.StatusNotFound, "Volume %s could not be found.", id)
	}
	var body map[string]struct {
		Connector map[string]any `json:"connector"`
		NewSize   int            `json:"new_size"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	for name, args := range body {
		switch name {
		case "os-reserve":
			return v.reserve()
		case "os-unreserve":
			v.endReservation()
			return answer{http.StatusAccepted, nil}
		case "os-initialize_connection":
			return v.initialize(args.Connector)
		case "os-extend":
			return v.extend(args.NewSize, micro(r))
		case "os-terminate_connection":
			// tgt keeps the export; what changes is the reservation.
			v.endReservation()
			return answer{http.StatusAccepted, nil}
		}
	}
	return fault(http.StatusBadRequest, "There is no such action: %v", body)
}

func (v *disk) reserve() answer {
	if v.Status != "available" {
		return fault(http.StatusBadRequest, "Invalid volume: Volume status must be available to reserve, but the"+
			" status is %s.", v.Status)
	}
	v.Status = "attaching"
	return answer{http.StatusAccepted, nil}
}

// extend refuses a volume in use to clients of an older microversion.
func (v *disk) extend(size, micro int) answer {
	allowed := v.Status == "available" || v.Status == "in-use" && micro >= 42
	switch {
	case !allowed:
		return fault(http.StatusBadRequest, "Invalid volume: Volume %s status must be '{'status': 'available'}' to extend,"+
			" currently %s.", v.ID, v.Status)
	case size <= v.Size:
		return fault(http.StatusBadRequest, "Invalid input received: New size for extend must be greater than current size."+
			" (current: %d, extended: %d).", v.Size, size)
	}
	v.before, v.grow, v.looks = v.Status, size, 0
	v.Status = "extending"
	return answer{http.StatusAccepted, nil}
}

// endReservation ends a reservation. Any other volume stays as it is.
func (v *disk) endReservation() {
	if v.Status == "attaching" {
		v.Status = "available"
	}
}

// Password returns the CHAP password of a volume, which never changes.
func Password(id string) string { return "chap-" + id[:8] + "-pw" }

func (v *disk) initialize(connector map[string]any) answer {
	kind, data, refused := v.export(connector)
	if refused != "" {
		return fault(http.StatusBadRequest, "%s", refused)
	}
	return answer{http.StatusOK, map[string]any{
		"connection_info": map[string]any{"driver_volume_type": kind, "data": data},
	}}
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
