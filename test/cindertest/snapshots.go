package cindertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// snapshotsOf returns the IDs of a volume's snapshots, or of all, in the order of their creation.
func (s *Server) snapshotsOf(volumeID string) []string {
	ids := slices.Sorted(maps.Keys(s.snapshots))
	return slices.DeleteFunc(ids, func(id string) bool { return volumeID != "" && s.snapshots[id] != volumeID })
}

// AddSnapshot makes a snapshot of a volume without a request and returns its ID.
func (s *Server) AddSnapshot(volumeID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addSnapshot(volumeID)
}

func (s *Server) addSnapshot(volumeID string) string {
	s.made++
	id := fmt.Sprintf("%08d-0000-4000-8000-000000005a57", s.made)
	s.snapshots[id] = volumeID
	return id
}

func (s *Server) onSnapshots(r *http.Request, parts []string) answer {
	switch {
	case r.Method == http.MethodGet && len(parts) == 0:
		all := []any{}
		for _, id := range s.snapshotsOf(r.URL.Query().Get("volume_id")) {
			all = append(all, s.shownSnapshot(id))
		}
		return answer{http.StatusOK, map[string]any{"snapshots": all}}
	case r.Method == http.MethodPost && len(parts) == 0:
		return s.snapshot(r)
	case len(parts) != 1:
		return noSuchURL()
	case s.snapshots[parts[0]] == "":
		return fault(http.StatusNotFound, "Snapshot %s could not be found.", parts[0])
	case r.Method == http.MethodDelete:
		delete(s.snapshots, parts[0])
		return answer{http.StatusAccepted, nil}
	default:
		return answer{http.StatusOK, map[string]any{"snapshot": s.shownSnapshot(parts[0])}}
	}
}

func (s *Server) shownSnapshot(id string) map[string]any {
	return map[string]any{"id": id, "volume_id": s.snapshots[id], "status": "available", "size": 1}
}

// snapshot makes one, of a volume in use only by force.
func (s *Server) snapshot(r *http.Request) answer {
	var body struct {
		Snapshot struct {
			VolumeID string `json:"volume_id"`
			Force    bool   `json:"force"`
		} `json:"snapshot"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return fault(http.StatusBadRequest, "Malformed request body")
	}
	v, ok := s.volumes[body.Snapshot.VolumeID]
	switch {
	case !ok:
		return fault(http.StatusNotFound, "Volume %s could not be found.", body.Snapshot.VolumeID)
	case v.Status != "available" && !body.Snapshot.Force:
		return fault(http.StatusBadRequest, "Invalid volume: Volume %s status must be available, but current status is: %s.", v.ID, v.Status)
	}
	return answer{http.StatusAccepted, map[string]any{"snapshot": s.shownSnapshot(s.addSnapshot(v.ID))}}
}
