package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// applianceID is an ID. What is JSON itself, such as a number, is shown as it is.
type applianceID string

func (id applianceID) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(id)) {
		return []byte(id), nil
	}
	return json.Marshal(string(id))
}

// applianceVolume is a volume as the API shows it.
type applianceVolume struct {
	ID       applianceID    `json:"id"`
	Name     string         `json:"name"`
	Bytes    int64          `json:"bytes"`
	Server   string         `json:"server"`
	Path     string         `json:"path"`
	Metadata map[string]any `json:"metadata"`
	key      string
}

// appliance is a storage with a REST API. Its faults are consumed one by one, by requests that
// change something; "always" before a fault keeps it, for every request.
type appliance struct {
	server  *httptest.Server
	mu      sync.Mutex
	volumes []*applianceVolume
	made    int
	faults  []string
	asked   []string // the methods
	deleted []string // the paths
	room    int64
	keys    map[string]string // the requests, by their Idempotency-Key
	moved   string            // where a status of 3xx leads
	says    applianceID       // what it gives for the ID of each volume, empty for its own
	form    string            // of its IDs, empty for "vol-%d"
	beside  map[string]any    // what its lists have beside volumes
	link    string            // the header Link of its answers
	writes  *strings.Replacer // changes the text of its answers, nil for none
}

func newAppliance(t *testing.T) *appliance {
	t.Helper()
	a := &appliance{room: 100 * mebi, keys: map[string]string{}}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	return a
}

// fault returns what is wrong with a request.
func (a *appliance) fault(method string) string {
	a.asked = append(a.asked, method)
	if len(a.faults) == 0 {
		return ""
	}
	if a.faults[0] == "endless" {
		return "endless"
	}
	if always, is := strings.CutPrefix(a.faults[0], "always "); is {
		return always
	}
	if method == http.MethodGet {
		return ""
	}
	fault := a.faults[0]
	a.faults = a.faults[1:]
	return fault
}

func (a *appliance) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	fault := a.fault(r.Method)
	status := 0
	if _, err := fmt.Sscan(fault, &status); err == nil {
		a.mu.Unlock()
		if a.moved != "" {
			w.Header().Set("Location", a.moved)
		}
		w.WriteHeader(status)
		return
	}
	if fault == "endless" {
		a.mu.Unlock()
		babble(w)
		return
	}
	recorder := httptest.NewRecorder()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+login:
		recorder.WriteHeader(http.StatusUnauthorized)
	case a.hasOtherRequest(r):
		recorder.WriteHeader(http.StatusUnprocessableEntity)
	default:
		a.do(recorder, r)
	}
	a.mu.Unlock()
	switch fault {
	case "forget": // the work is done
		panic(http.ErrAbortHandler)
	case "late": // later than the script waits
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Second):
		}
	}
	if a.link != "" {
		w.Header().Set("Link", a.link)
	}
	w.WriteHeader(recorder.Code)
	text := recorder.Body.String()
	if a.writes != nil {
		text = a.writes.Replace(text)
	}
	_, _ = io.WriteString(w, text)
}

// babble writes until it is no longer read, but not so much that it fills the disk of a test that
// fails.
func babble(out io.Writer) {
	part, err := bytes.Repeat([]byte(" "), mebi), error(nil)
	for n := 0; n < 100 && err == nil; n++ {
		_, err = out.Write(part)
	}
}

// hasOtherRequest reports whether another request had this one's key, of which the storage keeps the
// answer.
func (a *appliance) hasOtherRequest(r *http.Request) bool {
	key, request := r.Header.Get("Idempotency-Key"), r.Method+" "+r.URL.Path
	if key == "" {
		return false
	}
	other, found := a.keys[key]
	a.keys[key] = request
	return found && other != request
}

func (a *appliance) do(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		a.deleted = append(a.deleted, r.URL.Path)
	}
	id := strings.TrimPrefix(r.URL.Path, "/volumes")
	i := slices.IndexFunc(a.volumes, func(v *applianceVolume) bool { return "/"+string(v.ID) == id })
	switch {
	case id == "" && r.Method == http.MethodGet:
		found := slices.DeleteFunc(slices.Clone(a.volumes), func(v *applianceVolume) bool {
			uid := r.URL.Query().Get("uid")
			return uid != "" && v.Metadata["uid"] != uid
		})
		for i := range found {
			v := *found[i]
			v.ID, found[i] = cmp.Or(a.says, v.ID), &v
		}
		found = append(found, &applianceVolume{ID: "by-hand", Bytes: mebi})
		answer := map[string]any{"volumes": found}
		maps.Copy(answer, a.beside)
		_ = json.NewEncoder(w).Encode(answer)
	case id == "" && r.Method == http.MethodPost:
		a.create(w, r)
	case i < 0:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPatch:
		a.grow(w, r, a.volumes[i])
	case r.Method == http.MethodDelete:
		a.volumes = slices.Delete(a.volumes, i, i+1)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// create knows a request again by its key, as long as the volume exists.
func (a *appliance) create(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	i := slices.IndexFunc(a.volumes, func(v *applianceVolume) bool { return v.key == key && key != "" })
	if i < 0 {
		v := &applianceVolume{Server: "nas.example", key: key}
		if err := json.NewDecoder(r.Body).Decode(v); err != nil || v.Bytes <= 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if v.Bytes > a.room {
			w.WriteHeader(http.StatusInsufficientStorage)
			return
		}
		a.made++
		v.ID = applianceID(fmt.Sprintf(cmp.Or(a.form, "vol-%d"), a.made))
		v.Path = "/vol/" + string(v.ID)
		v.Bytes = (v.Bytes + mebi - 1) / mebi * mebi
		a.volumes = append(a.volumes, v)
		i = len(a.volumes) - 1
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(a.volumes[i])
}

// grow never shrinks: an appliance that is asked to would lose data.
func (a *appliance) grow(w http.ResponseWriter, r *http.Request, v *applianceVolume) {
	var wanted struct{ Bytes int64 }
	switch err := json.NewDecoder(r.Body).Decode(&wanted); {
	case err != nil || wanted.Bytes < v.Bytes:
		w.WriteHeader(http.StatusBadRequest)
	case wanted.Bytes > a.room:
		w.WriteHeader(http.StatusInsufficientStorage)
	default:
		v.Bytes = wanted.Bytes
	}
}
