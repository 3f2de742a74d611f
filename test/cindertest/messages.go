package cindertest

import (
	"net/http"
	"slices"
	"time"
)

// message is what Cinder says to the user of a volume about a request that failed after its answer.
type message struct {
	ID        string `json:"id"`
	Event     string `json:"event_id"`
	Text      string `json:"user_message"`
	Level     string `json:"message_level"`
	Created   string `json:"created_at"`
	RequestID string `json:"request_id"`
	Kind      string `json:"resource_type"`
	Resource  string `json:"resource_uuid"`
}

// noRoom is what the scheduler says where no backend is suitable.
const noRoom = "Could not find any available weighted backend."

// Say keeps a message about a volume.
func (s *Server) Say(volumeID, event, text, requestID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(volumeID, event, text, requestID)
}

func (s *Server) say(volumeID, event, text, requestID string) {
	created := time.Now().UTC() //nolint:forbidigo // the order of messages
	s.said = append(s.said, message{
		ID: "5072e44b-ffdf-4357-a0f9-e9b56073ef3d", Event: event, Text: text, Level: "ERROR",
		Created: created.Format("2006-01-02T15:04:05.000000"), RequestID: requestID, Kind: "VOLUME", Resource: volumeID,
	})
}

func (s *Server) messages(id string) answer {
	if v := s.volumes[id]; v != nil && v.unsaid != "" && v.Status != "extending" {
		s.sayWhy(v)
	}
	found := slices.DeleteFunc(slices.Clone(s.said), func(m message) bool { return m.Resource != id })
	return answer{http.StatusOK, map[string]any{"messages": found}}
}

// sayWhy says why a volume was not extended, but in the second list only: the scheduler gives it its
// former status back before (extend_volume in cinder/scheduler/manager.py).
func (s *Server) sayWhy(v *disk) {
	if v.listed {
		s.say(v.ID, "VOLUME_VOLUME_007_003", "extend volume:"+noRoom, v.unsaid)
		v.unsaid = ""
	}
	v.listed = !v.listed
}
