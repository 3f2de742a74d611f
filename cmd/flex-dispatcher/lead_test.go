package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
)

// leases is an API server with one lease. released is when its holder released it.
type leases struct {
	mu       sync.Mutex
	lease    []byte
	released time.Time
}

func (l *leases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet && l.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	}
	if r.Method != http.MethodGet {
		l.lease, _ = io.ReadAll(r.Body)
		if l.released.IsZero() && bytes.Contains(l.lease, []byte(`"holderIdentity":""`)) {
			l.released = time.Now()
		}
	}
	_, _ = w.Write(l.lease)
}

// The elector releases the lease as soon as its context ends. A worker that still writes then would
// write beside the next leader.
func TestTheLeaseIsReleasedWhenTheWorkersHaveEnded(t *testing.T) {
	server := &leases{}
	api := httptest.NewServer(server)
	t.Cleanup(api.Close)
	ctx, stop := context.WithCancel(t.Context())
	var ended time.Time
	s := &settings{leaseNamespace: "home"}
	err := s.lead(ctx, &rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, func(ctx context.Context) {
		stop()
		<-ctx.Done()
		time.Sleep(time.Second)
		ended = time.Now()
	})
	if err != nil {
		t.Fatal(err)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	switch {
	case ended.IsZero() || server.released.IsZero():
		t.Errorf("it ended at %s, the lease was released at %s", ended, server.released)
	case server.released.Before(ended):
		t.Errorf("the lease was released %s before the workers had ended", ended.Sub(server.released))
	}
}

// With many config namespaces the check of permissions takes a while. A liveness probe that finds
// no listener would restart the container.
func TestHealthIsServedBeforePermissionsAreChecked(t *testing.T) {
	asked, answer := make(chan struct{}, 100), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		http.Error(w, "ended", http.StatusServiceUnavailable)
	}))
	t.Cleanup(api.Close)
	ctx, stop := context.WithCancel(t.Context())
	address := "127.0.0.1:" + freePort(t)
	s := &settings{Serving: options.Serving{Namespace: "home"}, leaseNamespace: "system", listen: address}
	s.controller.Namespaces = []string{"home"}
	ended := make(chan error)
	go func() { ended <- s.serve(ctx, &rest.Config{Host: api.URL}) }()
	<-asked
	if code, body := get(t, "http://"+filepath.Join(address, "healthz")); code != http.StatusOK {
		t.Errorf("/healthz answers %d, %q", code, body)
	}
	if code, _ := get(t, "http://"+filepath.Join(address, "readyz")); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d", code)
	}
	stop()
	close(answer)
	if err := <-ended; err == nil {
		t.Error("it ended without an error")
	}
}

// freePort returns a port on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	free := httptest.NewServer(nil)
	defer free.Close()
	return free.Listener.Addr().String()[len("127.0.0.1:"):]
}
