// Package cindertest is a Cinder in the test's own process. What it answers follows the requests and
// answers that were captured from a real Cinder (Zed, API 3.70) with auth_strategy = noauth and tgt.
package cindertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
)

// Fate is what becomes of a request.
type Fate int

// The fates of a request.
const (
	// Answer serves it.
	Answer Fate = iota
	// DropRequest closes the connection before anything happened.
	DropRequest
	// DropAnswer does what was asked and closes the connection without an answer.
	DropAnswer
	// Refuse answers that the credentials are not good (any more).
	Refuse
)

// Server is a Cinder. Its fields may be set before the first request.
type Server struct {
	*httptest.Server

	// Gate decides over every request before it is served. Nil serves all.
	Gate func(*http.Request) Fate
	// Quota is the number of volumes that may exist.
	Quota int
	// Slow is how often a volume is looked at before it leaves "creating", "detaching" or "deleting".
	Slow int

	mu      sync.Mutex
	made    int
	volumes map[string]*disk
}

// New starts a server; the caller closes it.
func New() *Server {
	s := &Server{Quota: 10, Slow: 1, volumes: map[string]*disk{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Endpoint is what a cloud config names.
func (s *Server) Endpoint() string { return s.URL + "/v3" }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	fate := Answer
	if s.Gate != nil {
		fate = s.Gate(r)
	}
	if fate == DropRequest {
		panic(http.ErrAbortHandler)
	}
	if fate == Refuse {
		fault(http.StatusUnauthorized, "The request you have made requires authentication.").write(w)
		return
	}
	s.mu.Lock()
	a := s.route(r)
	s.mu.Unlock()
	if fate == DropAnswer {
		panic(http.ErrAbortHandler)
	}
	a.write(w)
}

// answer is a status and a body.
type answer struct {
	status int
	body   any
}

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Openstack-Request-Id", "req-00000000-0000-4000-8000-000000000000")
	w.WriteHeader(a.status)
	if a.body != nil {
		_ = json.NewEncoder(w).Encode(a.body) // the client has gone: the test will notice
	}
}

// fault is Cinder's form of an error.
func fault(status int, format string, args ...any) answer {
	names := map[int]string{
		http.StatusBadRequest: "badRequest", http.StatusNotFound: "itemNotFound",
		http.StatusRequestEntityTooLarge: "overLimit", http.StatusUnauthorized: "error",
	}
	return answer{status, map[string]any{
		names[status]: map[string]any{"code": status, "message": fmt.Sprintf(format, args...)},
	}}
}

var projectForm = regexp.MustCompile(`^[0-9a-f-]+$`)

// route strips version and project and finds who serves the rest. The project is optional in the URL,
// and where it is there it must be the token's.
func (s *Server) route(r *http.Request) answer {
	path, ok := strings.CutPrefix(r.URL.Path, "/v3/")
	_, project, hasToken := strings.Cut(r.Header.Get("X-Auth-Token"), ":")
	if !ok || !hasToken {
		return answer{http.StatusNotFound, map[string]any{"message": "The resource could not be found."}}
	}
	parts := strings.Split(path, "/")
	if projectForm.MatchString(parts[0]) {
		if parts[0] != project {
			return fault(http.StatusBadRequest, "Malformed request url")
		}
		parts = parts[1:]
	}
	return s.resource(r, parts)
}

func (s *Server) resource(r *http.Request, parts []string) answer {
	switch request := r.Method + " " + strings.Join(wild(parts), "/"); request {
	case "POST volumes":
		return s.create(r)
	case "GET volumes/detail":
		return s.list(r)
	case "GET volumes/*":
		return s.show(parts[1])
	case "DELETE volumes/*":
		return s.remove(parts[1])
	case "POST volumes/*/action":
		return s.action(r, parts[1])
	case "GET messages":
		return s.messages(r)
	default:
		return answer{http.StatusNotFound, map[string]any{"message": "The resource could not be found."}}
	}
}

// wild replaces a volume's ID.
func wild(parts []string) []string {
	if len(parts) < 2 || parts[0] != "volumes" || parts[1] == "detail" {
		return parts
	}
	return append([]string{"volumes", "*"}, parts[2:]...)
}
