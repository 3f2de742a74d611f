package remote

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
	"strings"
	"sync"
	"testing"
)

// kube plays the API server: what a provisioning pod may do there with PVs and Secrets.
type kube struct {
	t       *testing.T
	server  *httptest.Server
	mu      sync.Mutex
	objects map[string]object // by kind and name
}

// object is one of Kubernetes.
type object map[string]any

// at returns what is at a path.
func (o object) at(keys ...string) any {
	var in any = map[string]any(o)
	for _, key := range keys {
		fields, _ := in.(map[string]any)
		in = fields[key]
	}
	return in
}

func newKube(t *testing.T, dir string) *kube {
	t.Helper()
	k := &kube{t: t, objects: map[string]object{}}
	k.server = httptest.NewTLSServer(k)
	t.Cleanup(k.server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.server.Certificate().Raw})
	for name, content := range map[string]string{"token": token, "namespace": "flex-provisioner", "ca.crt": string(authority)} {
		must(t, os.WriteFile(filepath.Join(dir, "account", name), []byte(content), 0o600))
	}
	return k
}

func (k *kube) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	const pvs, secrets = "/api/v1/persistentvolumes", "/api/v1/namespaces/flex-provisioner/secrets"
	key := path.Base(path.Dir(r.URL.Path)) + "/" + path.Base(r.URL.Path)
	_, exists := k.objects[key]
	switch {
	case r.Method == http.MethodPost && (r.URL.Path == pvs || r.URL.Path == secrets):
		k.create(w, r)
	case r.Method == http.MethodGet && path.Dir(r.URL.Path) == pvs && exists:
		_ = json.NewEncoder(w).Encode(k.objects[key])
	case r.Method == http.MethodDelete && path.Dir(r.URL.Path) == secrets && exists:
		delete(k.objects, key)
	case exists:
		w.WriteHeader(http.StatusForbidden)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (k *kube) create(w http.ResponseWriter, r *http.Request) {
	var o object
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	key := fmt.Sprintf("%s/%s", path.Base(r.URL.Path), o.at("metadata", "name"))
	if _, exists := k.objects[key]; exists {
		w.WriteHeader(http.StatusConflict)
		return
	}
	k.objects[key] = o
	w.WriteHeader(http.StatusCreated)
}

// all returns the objects of a kind.
func (k *kube) all(kind string) []object {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []object
	for key, o := range k.objects {
		if strings.HasPrefix(key, kind+"/") {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b object) int {
		return strings.Compare(fmt.Sprint(a.at("metadata", "name")), fmt.Sprint(b.at("metadata", "name")))
	})
	return found
}

// forget deletes the PVs, as the dispatcher does once their volumes are deleted.
func (k *kube) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.objects {
		if strings.HasPrefix(key, "persistentvolumes/") {
			delete(k.objects, key)
		}
	}
}

// password returns the password of a Secret for CHAP.
func password(t *testing.T, secret object) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(fmt.Sprint(secret.at("data", "node.session.auth.password")))
	must(t, err)
	return string(text)
}
