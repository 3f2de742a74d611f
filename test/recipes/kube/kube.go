// Package kube plays the API server for the tests of recipes: what a provisioning pod may do there
// with PersistentVolumes and Secrets, and what it finds in its files.
package kube

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const (
	// Namespace is that of the pods.
	Namespace = "flex-provisioner"
	token     = "CANARY-api-token"
)

// Server plays the API server.
type Server struct {
	URL     string
	mu      sync.Mutex
	objects map[string]Object // by kind and name
}

// Object is one of Kubernetes.
type Object map[string]any

// At returns what is at a path.
func (o Object) At(keys ...string) any {
	var in any = map[string]any(o)
	for _, key := range keys {
		fields, _ := in.(map[string]any)
		in = fields[key]
	}
	return in
}

// New returns a server, and writes what a pod has to use it into the directory of its account.
func New(t *testing.T, account string) *Server {
	t.Helper()
	k := &Server{objects: map[string]Object{}}
	server := httptest.NewTLSServer(k)
	t.Cleanup(server.Close)
	k.URL = server.URL
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string]string{"token": token, "namespace": Namespace, "ca.crt": string(authority)} {
		if err := os.WriteFile(filepath.Join(account, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func (k *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	const pvs, secrets = "/api/v1/persistentvolumes", "/api/v1/namespaces/" + Namespace + "/secrets"
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodPost && (r.URL.Path == pvs || r.URL.Path == secrets):
		k.create(w, r)
	case r.Method == http.MethodGet && path.Dir(r.URL.Path) == pvs, r.Method == http.MethodDelete && path.Dir(r.URL.Path) == secrets:
		k.getOrDelete(w, r)
	default:
		w.WriteHeader(http.StatusForbidden)
	}
}

func (k *Server) getOrDelete(w http.ResponseWriter, r *http.Request) {
	key := path.Base(path.Dir(r.URL.Path)) + "/" + path.Base(r.URL.Path)
	o, exists := k.objects[key]
	switch {
	case !exists:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(o)
	default:
		delete(k.objects, key)
	}
}

func (k *Server) create(w http.ResponseWriter, r *http.Request) {
	var o Object
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	key := fmt.Sprintf("%s/%s", path.Base(r.URL.Path), o.At("metadata", "name"))
	if _, exists := k.objects[key]; exists {
		w.WriteHeader(http.StatusConflict)
		return
	}
	k.objects[key] = o
	w.WriteHeader(http.StatusCreated)
}

// All returns the objects of a kind.
func (k *Server) All(kind string) []Object {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []Object
	for key, o := range k.objects {
		if strings.HasPrefix(key, kind+"/") {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b Object) int {
		return strings.Compare(fmt.Sprint(a.At("metadata", "name")), fmt.Sprint(b.At("metadata", "name")))
	})
	return found
}

// Forget deletes the PVs, as the dispatcher does once their volumes are deleted.
func (k *Server) Forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.objects {
		if strings.HasPrefix(key, "persistentvolumes/") {
			delete(k.objects, key)
		}
	}
}

// Password returns the password of a Secret for CHAP.
func Password(t *testing.T, secret Object) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(fmt.Sprint(secret.At("data", "node.session.auth.password")))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// PVs returns the file pv.json of some requests, as far as these tests need it.
func PVs(t *testing.T, requests ...contract.Request) string {
	t.Helper()
	var items []any
	for _, r := range requests {
		items = append(items, map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolume",
			"metadata": map[string]any{"name": r.PVName, "annotations": map[string]any{contract.AnnClaimUID: r.UID}},
			"spec":     map[string]any{"capacity": map[string]any{"storage": strconv.FormatInt(r.Size, 10)}, "accessModes": r.AccessModes, "volumeMode": r.VolumeMode},
		})
	}
	var all any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 {
		all = items[0]
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
