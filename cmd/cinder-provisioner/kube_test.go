package main

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// kubeAPI is the part of the Kubernetes API that the image uses: create, get and delete, by path.
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
