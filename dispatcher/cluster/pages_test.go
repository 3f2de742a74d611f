package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

// An API server that streams no lists sends all objects in one answer where any version will do:
// all that users wrote on all claims at once.
func TestListsOfWhatUsersWriteComeInPages(t *testing.T) {
	var asked []string
	listed := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		kind := map[string]string{
			"/api/v1/persistentvolumeclaims": "PersistentVolumeClaim", "/api/v1/persistentvolumes": "PersistentVolume", "/api/v1/namespaces/ns/configmaps": "ConfigMap",
		}[r.URL.Path]
		switch {
		case kind == "":
			w.WriteHeader(http.StatusNotFound)
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case query.Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			listed <- fmt.Sprintf("%s: limit %s, version %q, from %q, of %q", kind, query.Get("limit"), query.Get("resourceVersion"), query.Get("continue"), query.Get("labelSelector"))
			writePage(w, kind, query.Get("continue"))
		}
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	caches, err := cluster.New(client, contract.ProvisionerName, []string{"ns"}, nil, cluster.Handlers{
		Active: func() bool { return true },
		Claim:  func(*corev1.PersistentVolumeClaim) {}, ClaimUpdated: func(_, _ *corev1.PersistentVolumeClaim) {}, PV: func(*corev1.PersistentVolume) {}, Config: func(*corev1.ConfigMap) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	caches.Start(ctx)
	defer func() { // before the server: to close it waits for its watches, and an informer that goes on opens another one
		stop()
		caches.Shutdown()
	}()
	for range 6 {
		asked = append(asked, <-listed)
	}
	all := strings.Join(asked, "\n")
	for kind, one := range map[string]struct {
		limit    int
		selector string
	}{"PersistentVolumeClaim": {100, ""}, "PersistentVolume": {100, ""}, "ConfigMap": {20, "type=provisioner-config"}} {
		for _, from := range []string{"", "second"} {
			if want := fmt.Sprintf("%s: limit %d, version \"\", from %q, of %q", kind, one.limit, from, one.selector); !strings.Contains(all, want) {
				t.Errorf("asked for\n%s\nwant %s", all, want)
			}
		}
	}
}

func writePage(w http.ResponseWriter, kind, from string) {
	next := map[string]string{"": "second"}[from]
	object, _ := json.Marshal(metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "of-" + from + "-page", Namespace: "ns", UID: types.UID("uid-" + from)}})
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[%s]}`, kind, next, object)
}
