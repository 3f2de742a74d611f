package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// waitingClaims is an API server with claims of a class that has no config, which grants the lease,
// keeps it and counts what is written.
type waitingClaims struct {
	mu              sync.Mutex
	lease           []byte
	leases, events  int
	leasesIn        map[string]bool // where leases were asked for
	noted           bool            // the config namespaces were on the lease; the elector, which sees no conflict here, may write over them
	claims, classes []any
}

func newWaitingClaims(n int) *waitingClaims {
	s := &waitingClaims{leasesIn: map[string]bool{}, classes: []any{map[string]any{
		"metadata": map[string]any{"name": "gold", "uid": "c", "resourceVersion": "1"}, "provisioner": "flex-provisioner.io",
		"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
	}}}
	for i := range n {
		s.claims = append(s.claims, map[string]any{
			"metadata": map[string]any{
				"name": fmt.Sprintf("c%d", i), "namespace": "app", "uid": fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "resourceVersion": "1",
				"annotations": map[string]string{"volume.kubernetes.io/storage-provisioner": "flex-provisioner.io"},
			},
			"spec": map[string]any{"storageClassName": "gold", "accessModes": []string{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]string{"storage": "1Gi"}}},
		})
	}
	return s
}

func (s *waitingClaims) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "selfsubjectaccessreviews"):
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{},"status":{"allowed":true}}`)
	case strings.Contains(path, "/leases"):
		s.serveLease(w, r)
	case r.Method == http.MethodPost && strings.Contains(path, "/events"):
		s.mu.Lock()
		s.events++
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"e","namespace":"app"}}`)
	case r.URL.Query().Get("sendInitialEvents") != "": // the client lists instead
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case r.URL.Query().Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList"):
		_, _ = io.WriteString(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	default:
		items := map[string][]any{"persistentvolumeclaims": s.claims, "storageclasses": s.classes}[filepath.Base(path)]
		_ = json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]string{"resourceVersion": "1"}, "items": append([]any{}, items...)})
	}
}

func (s *waitingClaims) serveLease(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leasesIn[strings.Split(r.URL.Path, "/leases")[0]] = true
	if r.Method == http.MethodGet && s.lease == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	}
	if r.Method != http.MethodGet {
		s.leases++
		s.lease, _ = io.ReadAll(r.Body)
		s.noted = s.noted || bytes.Contains(s.lease, []byte(config.AnnNamespaces))
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	}
	_, _ = w.Write(s.lease)
}

// Events, the controller and the lease once shared one rate limiter: the renewal waited behind the
// events of 2,500 claims for more than its deadline of 10 s, the lease was lost, and every next
// leader lost it in the same way.
func TestManyWaitingClaimsDoNotEndTheLeader(t *testing.T) {
	server := newWaitingClaims(2500)
	api := httptest.NewServer(server)
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	lines := dispatch(t, "--kubeconfig="+kubeconfigFor(t, api.URL), "--listen=127.0.0.1:0", "--namespace=flex-provisioner", "--logging-format=json")
	said(t, lines, "Leading")
	time.Sleep(leaseDuration + leaseRetryPeriod) // a lease that is not renewed is lost after this
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.leases < 5 {
		t.Errorf("the lease was written %d times in %s", server.leases, leaseDuration)
	}
	if server.events < 500 {
		t.Errorf("only %d events were written", server.events)
	}
	t.Logf("the lease was written %d times, events %d times", server.leases, server.events)
	for {
		select {
		case line, more := <-lines:
			if !more || line["err"] != nil {
				t.Fatalf("the dispatcher says %v", line)
			}
		default:
			return // that it lives and ends well is checked when the test ends
		}
	}
}

// kubeconfigFor writes a kubeconfig of an API server.
func kubeconfigFor(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":"` + url +
		`"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The elector and the note of the config namespaces use one lease, in the dispatcher's namespace
// and not in that of the configs: the dispatcher has no right to a lease there.
func TestTheLeaseIsNotInTheNamespaceOfConfigs(t *testing.T) {
	server := newWaitingClaims(0)
	api := httptest.NewServer(server)
	t.Cleanup(func() {
		api.CloseClientConnections()
		api.Close()
	})
	lines := dispatch(t, "--kubeconfig="+kubeconfigFor(t, api.URL), "--listen=127.0.0.1:0", "--leader-elect-resource-namespace=system", "--logging-format=json")
	said(t, lines, "Leading")
	for end := time.Now().Add(time.Minute); !server.isNoted(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the config namespaces are not noted on the lease")
		}
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if got := slices.Collect(maps.Keys(server.leasesIn)); len(got) != 1 || !strings.HasSuffix(got[0], "/namespaces/system") {
		t.Errorf("leases are in %v", got)
	}
}

// isNoted reports whether the config namespaces were noted on the lease.
func (s *waitingClaims) isNoted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.noted
}
