package plugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flex-provisioner/flex-provisioner/internal/answerlimit"
)

// A user fills the memory of an administrator's tool by the events about a claim, which the core API
// does not limit.
func TestEventsAboutAnObjectAreReadUpToALimit(t *testing.T) {
	limit := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit = r.URL.Query().Get("limit")
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"EventList","apiVersion":"v1","items":[{"metadata":{"name":"e"},"involvedObject":{"uid":"u"},"message":%q}]}`, strings.Repeat("x", 2*mostEventBytes))
	}))
	defer server.Close()
	cfg := &rest.Config{Host: server.URL}
	answerlimit.Wrap(cfg)
	client, _, err := clients(cfg)
	if err != nil {
		t.Fatal(err)
	}
	found, err := eventsAbout(t.Context(), client, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "c", UID: "u"}})
	if err == nil || len(found) > 0 || limit != fmt.Sprint(mostEvents) {
		t.Errorf("%d events were read with the limit %q: %v", len(found), limit, err)
	}
}
