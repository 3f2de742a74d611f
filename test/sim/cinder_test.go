package sim_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing/fstest"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// cinderImage is the image of the classes that Cinder serves.
const cinderImage = "localhost/cinder:v1"

// storage is the Cinder of a world.
type storage struct {
	*cindertest.Server
	// down, lossy and dies are faults: no request arrives, answers get lost, Cinder dies while it
	// creates the next attachment.
	down, lossy, dies bool
	// elsewhere is another project of the same Cinder, in which nothing can be made. project is
	// that to which the login leads.
	elsewhere *cindertest.Server
	project   string
	// failed are the statuses that volumes had before they failed, by ID.
	failed map[string]string
	// missed are the UIDs of the claims for which an undo has looked in the other project: no
	// record says in which one a run without a PV has made its volume.
	missed map[string]bool
}

// The projects of a world's Cinder.
const (
	ownProject   = "admin"
	otherProject = "other"
)

var cinderFaults = []act{
	{"Cinder is down", func(w *world) string { w.cinder.down = true; return "it" }},
	{"Cinder is up", func(w *world) string { w.cinder.down = false; return "it" }},
	{"answers of Cinder get lost", func(w *world) string { w.cinder.lossy = true; return "it" }},
	{"Cinder dies while it attaches", func(w *world) string { w.cinder.dies = true; return "it" }},
	{"a volume of Cinder fails", func(w *world) string { return w.cinder.failOne(w.rand) }},
	{"Cinder refuses the login", func(w *world) string { w.cinder.refuses(true); return "it" }},
	{"the login to Cinder is changed", func(w *world) string { w.cinder.project = otherProject; return "to " + otherProject }},
	{"Cinder recovers", func(w *world) string { w.cinder.recover(); return "it" }},
}

func (w *world) setUpCinder() {
	release := cindertest.Releases()[w.rand.IntN(4)]
	w.cinder = storage{Server: cindertest.NewUnserved(release), elsewhere: cindertest.NewUnserved(release), project: ownProject, failed: map[string]string{}, missed: map[string]bool{}}
	w.cinder.Quota, w.cinder.elsewhere.Quota = 1000, 0
	w.Images[cinderImage] = fakecluster.Image{Program: w.runCinder}
}

// failOne sets the status of a volume to error, as Cinder does when its backend has failed.
func (s *storage) failOne(r *rand.Rand) string {
	all := slices.DeleteFunc(s.Volumes(), func(v cindertest.View) bool { return v.Status != "available" && v.Status != "in-use" })
	if len(all) == 0 {
		return ""
	}
	v := all[r.IntN(len(all))]
	s.failed[v.ID] = v.Status
	s.SetStatus(v.ID, "error")
	return v.Name
}

// refuses sets whether the login is refused.
func (s *storage) refuses(refuses bool) {
	s.Gate = func(*http.Request) cindertest.Fate {
		if refuses {
			return cindertest.Refuse
		}
		return cindertest.Answer
	}
}

func (s *storage) recover() {
	s.down, s.lossy, s.dies, s.project = false, false, false, ownProject
	s.refuses(false)
	for _, v := range s.Volumes() {
		if was, failed := s.failed[v.ID]; failed && v.Status == "error" {
			s.SetStatus(v.ID, was) // an administrator has repaired it
		}
	}
	clear(s.failed)
}

// runCinder is what the Cinder image does in a container.
func (w *world) runCinder(ctx context.Context, c *fakecluster.Container) fakecluster.Exit {
	tasks, err := input.Read(cinderInput(c, w.cinder.project))
	if err != nil {
		return exitOf(run.End([]input.Task{{Verb: c.Verb()}}, err))
	}
	first := slices.IndexFunc(tasks, func(t input.Task) bool { return t.Fault == nil })
	if first < 0 {
		return exitOf(run.End(tasks, nil))
	}
	client := http.Client{Transport: &wire{w, c}}
	api, err := cinder.Connect(ctx, tasks[first].Login, client, wait)
	if err != nil {
		return exitOf(run.End(tasks, err))
	}
	runner := run.New(volume.NewKeeper(cinder.NewBackend(api, wait), wait), pv.NewStore(c.Kube), slog.New(slog.DiscardHandler), time.Now)
	project, exit := w.cinder.project, exitOf(runner.RunAll(ctx, tasks))
	w.cinder.note(tasks[first], project, exit)
	return exit
}

// note notes an undo that has succeeded in the other project, and that one has looked in the own
// project since. An undo has a Job of its own.
func (s *storage) note(t input.Task, project string, exit fakecluster.Exit) {
	if t.Request.Undo && exit.Code == 0 {
		s.missed[t.Request.UID] = project == otherProject
	}
}

func exitOf(ended []run.Ended) fakecluster.Exit {
	result := run.JudgeAll(ended)
	return fakecluster.Exit{Code: int32(result.Code), Message: result.Message}
}

func cinderInput(c *fakecluster.Container, project string) input.Sources {
	env := c.Env()
	env["OS_CINDER_ENDPOINT"], env["OS_PROJECT_NAME"] = "http://cinder.example/v3", project
	dir := fstest.MapFS{}
	for _, name := range []string{contract.RequestFile, contract.PVFile} {
		dir[path.Base(name)] = &fstest.MapFile{Data: []byte(c.File(name))}
	}
	return input.Sources{Verb: c.Verb(), Namespace: fakecluster.ConfigNamespace, Methods: cinder.Methods(), Dir: dir, Env: env}
}

// wire takes a container's requests to the world's Cinder, each when it may move.
type wire struct {
	w *world
	c *fakecluster.Container
}

// RoundTrip makes a request, and may lose it or its answer.
func (t *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.c.Request(r.Context(), r.Method+" "+r.URL.Path); err != nil {
		return nil, err
	}
	storage := t.w.cinder
	if storage.down {
		return nil, errors.New("connection refused")
	}
	handler := storage.Handler()
	if _, project, _ := strings.Cut(r.Header.Get("X-Auth-Token"), ":"); project == otherProject {
		handler = storage.elsewhere.Handler()
	}
	if r.Method == http.MethodDelete {
		t.w.checkRemoval(path.Base(r.URL.Path))
	}
	answer := httptest.NewRecorder()
	before := len(storage.Attachments())
	handler.ServeHTTP(answer, r)
	if t.w.cinder.diesAfter(before) {
		return nil, io.ErrUnexpectedEOF
	}
	if storage.lossy && t.w.rand.IntN(3) == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	response := answer.Result()
	response.Request = r
	return response, nil
}

// diesAfter reports whether Cinder has died between the two writes of a request, if this has
// created an attachment; before is how many attachments there were. Cinder is up again at once.
func (s *storage) diesAfter(before int) bool {
	if !s.dies || len(s.Attachments()) <= before {
		return false
	}
	s.dies = false
	s.DieAttaching()
	return true
}

// wait pauses for d, or until the context ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
