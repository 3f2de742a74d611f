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
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	for name, args := range body {
		switch name {
		case "os-reserve":
			return v.reserve()
		case "os-unreserve":
			v.settle()
			return answer{http.StatusAccepted, nil}
		case "os-initialize_connection":
			return v.initialize(args.Connector)
		case "os-terminate_connection":
			// tgt keeps the export; what changes is the reservation.
			v.settle()
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

// settle ends a reservation. On any other volume it does nothing.
func (v *disk) settle() {
	if v.Status == "attaching" {
		v.Status = "available"
	}
}

// Password is the CHAP password of a volume, the same for its whole life.
func Password(id string) string { return "chap-" + id[:8] + "-pw" }

func (v *disk) initialize(connector map[string]any) answer {
	if text, _ := connector["initiator"].(string); text == "" {
		return fault(http.StatusBadRequest, "Invalid input received: Connector doesn't have required information:"+
			" initiator")
	}
	v.exported = true
	kind, data := "iscsi", v.iscsi()
	if v.Type == TypeFibre {
		kind, data = "fibre_channel", map[string]any{"target_wwn": "500a0981891b8dc5", "target_lun": 1}
	}
	return answer{http.StatusOK, map[string]any{
		"connection_info": map[string]any{"driver_volume_type": kind, "data": data},
	}}
}

func (v *disk) iscsi() map[string]any {
	return map[string]any{
		"target_discovered": false,
		"target_portal":     "127.0.0.1:3260",
		"target_iqn":        "iqn.2010-10.org.openstack:volume-" + v.ID,
		"target_lun":        1,
		"volume_id":         v.ID,
		"auth_method":       "CHAP",
		"auth_username":     "user-" + v.ID[:8],
		"auth_password":     Password(v.ID),
		"encrypted":         v.Encrypted,
		"qos_specs":         nil,
		"access_mode":       "rw",
		"cacheable":         false,
	}
}
