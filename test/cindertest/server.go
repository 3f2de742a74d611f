package cindertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Fate says what happens to a request.
type Fate int

// The fates of a request.
const (
	// Answer serves it.
	Answer Fate = iota
	// DropRequest closes the connection before the request is executed.
	DropRequest
	// DropAnswer executes the request and closes the connection without an answer.
	DropAnswer
	// Refuse answers that the credentials are not valid.
	Refuse
	// Hang executes the request and never answers.
	Hang
)

// Reply is an answer that a test sets.
type Reply struct {
	Status int
	Header map[string]string
	Body   string
}

// Server is a Cinder. Its fields may be set before the first request.
type Server struct {
	*httptest.Server

	// Gate decides the fate of every request. Nil answers all.
	Gate func(*http.Request) Fate
	// Instead replaces the server's answer. Nil, or a nil reply, replaces nothing.
	Instead func(*http.Request) *Reply
	// Quota is the number of volumes that may exist.
	Quota int
	// MaxSize is the largest size that every volume type allows, and VolumeLimit the largest that
	// the project's quota does, in GiB. Zero is no limit.
	MaxSize, VolumeLimit int
	// ZoneFallback makes a volume in the zone "nova" where the one that is asked for does not exist
	// (allow_availability_zone_fallback).
	ZoneFallback bool
	// ClonesAnywhere makes a clone in the zone that is asked for, even if its source is in another
	// (cloned_volume_same_az = false).
	ClonesAnywhere bool
	// Room is the largest size that a backend has room for to extend a volume to, in GiB.
	Room int
	// Release is the major version of Cinder whose answers these are: 17 (Victoria), 21 (Zed), 26,
	// 28 or 29.
	Release int
	// MaxMicro is the newest microversion, 3.MaxMicro. It is the release's unless a test changes
	// it.
	MaxMicro int
	// Page is how many volumes a page of a list holds. Zero puts all of them on one page.
	Page int
	// PublicEndpoint is the beginning of the links to the next page, instead of the URL that was
	// asked.
	PublicEndpoint string
	// HidesHosts is true if the login is not an administrator's, to whom alone Cinder shows the
	// hosts of attachments.
	HidesHosts bool
	// NoFilters is true if the login is not an administrator's, and Cinder has no
	// resource_filters.json: it ignores the filter of a list of volumes, and refuses that of a list
	// of attachments from microversion 3.31 on.
	NoFilters bool
	// Slow is how many GETs of a volume it takes until the volume leaves "creating", "detaching" or
	// "deleting".
	Slow int

	mu      sync.Mutex
	made    int
	volumes map[string]*disk
	uses    map[string]*use
	// snapshots are the volumes' IDs by those of their snapshots.
	snapshots map[string]string
	// served counts the requests, and said are the messages about volumes.
	served int
	said   []message
}

// Releases lists the releases of Cinder that a Server can be.
func Releases() []int { return []int{17, 21, 26, 28, 29} }

// New starts a Cinder 21; the caller closes it.
func New() *Server { return NewRelease(21) }

// NewRelease starts a server that answers as that release of Cinder does; the caller closes it.
func NewRelease(release int) *Server {
	s := NewUnserved(release)
	s.Server = httptest.NewServer(s.Handler())
	return s
}

// NewUnserved returns a server without an address: its Handler serves.
func NewUnserved(release int) *Server {
	s := &Server{Quota: 10, Slow: 1, Room: 10000, volumes: map[string]*disk{}, uses: map[string]*use{}, snapshots: map[string]string{}}
	s.SetRelease(release)
	return s
}

// Handler serves requests.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// SetRelease makes the server another release.
func (s *Server) SetRelease(release int) { s.Release, s.MaxMicro = release, maxMicros[release] }

// maxMicros holds the newest microversion of each release.
var maxMicros = map[int]int{17: 62, 21: 70, 26: 71, 28: 71, 29: 71}

// Endpoint returns the URL for a cloud config.
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
	if s.instead(w, r) {
		return
	}
	s.mu.Lock()
	s.served++
	w.Header().Set("X-Compute-Request-Id", s.requestID())
	a := s.route(r)
	s.mu.Unlock()
	switch fate {
	case DropAnswer:
		panic(http.ErrAbortHandler)
	case Hang:
		<-r.Context().Done()
	default:
		a.write(w)
	}
}

func (s *Server) instead(w http.ResponseWriter, r *http.Request) bool {
	if s.Instead == nil {
		return false
	}
	reply := s.Instead(r)
	if reply == nil {
		return false
	}
	for name, value := range reply.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(reply.Status)
	_, _ = w.Write([]byte(reply.Body)) // the client closed the connection: the test will notice
	return true
}

// requestID is the ID by which Cinder's messages know the present request.
func (s *Server) requestID() string {
	return fmt.Sprintf("req-%08d-0000-4000-8000-000000000000", s.served)
}

// answer is a status and a body.
type answer struct {
	status int
	body   any
}

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Openstack-Request-Id", "req-00000000-0000-4000-8000-000000000000")
	if a.status == http.StatusRequestEntityTooLarge {
		w.Header().Set("Retry-After", "0")
	}
	w.WriteHeader(a.status)
	if a.body != nil {
		_ = json.NewEncoder(w).Encode(a.body) // the client closed the connection: the test will notice
	}
}

// fault returns an error in Cinder's form.
func fault(status int, format string, args ...any) answer {
	names := map[int]string{
		http.StatusBadRequest: "badRequest", http.StatusNotFound: "itemNotFound",
		http.StatusRequestEntityTooLarge: "overLimit", http.StatusUnauthorized: "error",
		http.StatusNotAcceptable: "computeFault", http.StatusConflict: "conflictingRequest", http.StatusInternalServerError: "computeFault",
	}
	return answer{status, map[string]any{
		names[status]: map[string]any{"code": status, "message": fmt.Sprintf(format, args...)},
	}}
}

var projectForm = regexp.MustCompile(`^[0-9a-f-]+$`)

// route removes version and project from the path and serves the rest.
func (s *Server) route(r *http.Request) answer {
	path, ok := strings.CutPrefix(r.URL.Path, "/v3/")
	_, project, hasToken := strings.Cut(r.Header.Get("X-Auth-Token"), ":")
	if !ok || !hasToken {
		return noSuchURL()
	}
	parts, refused := s.withoutProject(strings.Split(path, "/"), project)
	if refused != nil {
		return *refused
	}
	if micro(r) > s.MaxMicro {
		return fault(http.StatusNotAcceptable, "Version 3.%d is not supported by the API. Minimum is 3.0 and maximum"+
			" is 3.%d.", micro(r), s.MaxMicro)
	}
	switch parts[0] {
	case "attachments":
		return s.attachments(r, parts[1:])
	case "snapshots":
		return s.onSnapshots(r, parts[1:])
	default:
		return s.resource(r, parts)
	}
}

// yoga is the first release with URLs without a project, and with a rule for projects in URLs.
const yoga = 20

// withoutProject removes the project from a path. It must be the token's. Before Yoga it is
// mandatory, and any word is one; from Yoga on it is optional.
func (s *Server) withoutProject(parts []string, project string) ([]string, *answer) {
	if s.Release >= yoga && !projectForm.MatchString(parts[0]) {
		return parts, nil
	}
	if len(parts) < 2 || !slices.Contains([]string{"volumes", "attachments", "messages", "limits", "snapshots"}, parts[1]) {
		refused := noSuchURL()
		return nil, &refused
	}
	if parts[0] != project {
		refused := fault(http.StatusBadRequest, "Malformed request url")
		return nil, &refused
	}
	return parts[1:], nil
}

// noSuchURL is the answer to a URL that no resource has.
func noSuchURL() answer {
	return answer{http.StatusNotFound, map[string]any{
		"message": "The resource could not be found.<br /><br />\n\n\n", "code": "404 Not Found", "title": "Not Found",
	}}
}

// micro returns the minor number of the requested microversion.
func micro(r *http.Request) int {
	_, minor, _ := strings.Cut(r.Header.Get("OpenStack-API-Version"), "volume 3.")
	n, _ := strconv.Atoi(minor) // none: 3.0
	return n
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
	case "PUT volumes/*/metadata":
		return s.setMetadata(r, parts[1])
	case "POST volumes/*/action":
		return s.action(r, parts[1])
	case "GET limits":
		return s.limits()
	case "GET messages":
		return s.messages(r.URL.Query().Get("resource_uuid"))
	default:
		return noSuchURL()
	}
}

// wild replaces a volume's ID.
func wild(parts []string) []string {
	if len(parts) < 2 || parts[0] != "volumes" || parts[1] == "detail" {
		return parts
	}
	return append([]string{"volumes", "*"}, parts[2:]...)
}
