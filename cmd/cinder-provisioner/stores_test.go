package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/cindertest"
)

// store is a Cinder without keystone, read by plain HTTP.
type store struct {
	endpoint string
	env      []string
	// binary of the command.
	binary string
	// types by the source that their volumes are mapped to.
	types map[string]string
}

func cinders(t *testing.T) map[string]store {
	t.Helper()
	server := cindertest.New()
	t.Cleanup(server.Close)
	server.Quota = 1000
	all := map[string]store{"fake": {endpoint: server.Endpoint(), types: map[string]string{
		"iscsi": cindertest.TypePlain, "fc": cindertest.TypeFibre, "rbd.csi.ceph.com": cindertest.TypeRBD, "csi.nvmf.com": cindertest.TypeNVMe,
	}}}
	openrc := os.Getenv("FLEX_TEST_CINDER")
	if openrc == "" {
		return all
	}
	data, err := os.ReadFile(openrc)
	if err != nil {
		t.Fatal(err)
	}
	var actual store
	for line := range strings.Lines(string(data)) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		switch value = strings.Trim(value, `"'`); {
		case name == "OS_CINDER_ENDPOINT":
			actual.endpoint = value
		case ok:
			actual.env = append(actual.env, name+"="+value)
		}
	}
	if actual.endpoint == "" {
		t.Fatalf("%s names no Cinder without keystone", openrc)
	}
	// FLEX_TEST_CINDER_TYPES: "fc=fc,iscsi=lvmmp".
	actual.types = map[string]string{}
	for pair := range strings.SplitSeq(os.Getenv("FLEX_TEST_CINDER_TYPES"), ",") {
		if source, name, ok := strings.Cut(pair, "="); ok {
			actual.types[source] = name
		}
	}
	all["real"] = actual
	return all
}

// volumes counts those whose metadata carry the UID.
func (s store) volumes(t *testing.T, uid string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.endpoint+"/volumes/detail", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", "admin:admin")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct {
		Volumes []struct {
			Metadata map[string]string `json:"metadata"`
		} `json:"volumes"`
	}
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, v := range body.Volumes {
		if v.Metadata[contract.AnnClaimUID] == uid {
			count++
		}
	}
	return count
}

// kubeAPI is as much of Kubernetes as the image writes to: create, get and delete, by path.
type kubeAPI struct {
	mu      sync.Mutex
	objects map[string]map[string]any
}

func (k *kubeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	at := r.URL.Path
	var object map[string]any
	if r.Method == http.MethodPost {
		var err error
		if object, err = decode(r.Body); err != nil {
			answer(w, http.StatusBadRequest, "BadRequest")
			return
		}
		meta, _ := object["metadata"].(map[string]any)
		name, _ := meta["name"].(string)
		at += "/" + name
	}
	there, found := k.objects[at]
	switch {
	case r.Method == http.MethodPost && found:
		answer(w, http.StatusConflict, "AlreadyExists")
	case r.Method == http.MethodPost:
		k.objects[at] = object
		send(w, http.StatusCreated, object)
	case !found:
		answer(w, http.StatusNotFound, "NotFound")
	case r.Method == http.MethodDelete:
		delete(k.objects, at)
		send(w, http.StatusOK, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	default:
		send(w, http.StatusOK, there)
	}
}

// decode reads whichever format the client prefers.
func decode(body io.Reader) (map[string]any, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	typed, kind, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err == nil {
		object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind
	}
	return object, err
}

func answer(w http.ResponseWriter, status int, reason string) {
	send(w, status, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "message": reason, "code": status,
	})
}

func send(w http.ResponseWriter, status int, object any) {
	var body bytes.Buffer
	_ = json.NewEncoder(&body).Encode(object) // it came from JSON
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the client was killed: that is the test
}

func (k *kubeAPI) pv(name string) map[string]any {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.objects["/api/v1/persistentvolumes/"+name]
}

func (k *kubeAPI) drop(at string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.objects, at)
}

// count counts the objects of a resource.
func (k *kubeAPI) count(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	names := slices.DeleteFunc(slices.Collect(maps.Keys(k.objects)), func(at string) bool {
		return path.Base(path.Dir(at)) != resource
	})
	return len(names)
}
