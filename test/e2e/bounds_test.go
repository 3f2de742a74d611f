//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What a ConfigMap costs the dispatcher must not end it: it serves the classes of all others, and
// each next leader would read the same ConfigMap.
func TestAConfigMapDoesNotEndTheDispatcher(t *testing.T) {
	before, err := dispatchersNow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		key, value string
		words      []string
	}{
		"aliases": {"pod-template", "metadata:\n  annotations:\n    a: &a x\n    b: *a\nspec: {hostname: *a, subdomain: *a}\n", []string{"data[pod-template]", "line 3 has the anchor &a", "Remedy: write out"}},
		"deep":    {"pod-template", "spec: {hostname: " + strings.Repeat("[", 51) + strings.Repeat("]", 51) + "}", []string{"data[pod-template]", "deeper than the limit of 50 levels"}},
		"1 MiB":   {"ca", strings.Repeat("x", 1<<20-512), []string{"must have at most 229376 bytes", "files-from-secret"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "bounds-"+strings.ToLower(strings.ReplaceAll(name, " ", "")))
			_, cm := w.service(scripted(deletes+offer, map[string]string{tt.key: tt.value}))
			claim := w.claim(w.ns, "data")
			w.event(claim, "InvalidConfig", tt.words...)
			w.event(cm, "InvalidConfig", tt.words...)
			w.bound(w.claim(cinderClass, "other"))
		})
	}
	after, err := dispatchersNow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the dispatchers, and how often each was started again", after, before)
}

// dispatchersNow returns the dispatchers' pods, and how often their containers were started again.
func dispatchersNow(ctx context.Context) (string, error) {
	pods, err := replicas(ctx)
	var out []string
	for _, pod := range pods {
		for _, s := range pod.Status.ContainerStatuses {
			out = append(out, fmt.Sprintf("%s %s %d", pod.Name, pod.UID, s.RestartCount))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", "), err
}

// A storage, or whoever answers in its place, chooses neither where the login goes nor how much
// memory of a node a run takes.
func TestAnswersOfAHostileStorageAreBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, other string)
		code   string
		claim  string // what the event of its claim says
		job    string // what that of its Job says
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request, other string) {
			http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
		}, "78", "the server answers with a redirect, which is not followed", "Remedy: if that address is right, correct"},
		"endless": {func(w http.ResponseWriter, _ *http.Request, _ string) { neverEnds(w) }, "69", "the answer is larger than the limit of 32 MiB", "GET http://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "hostile-"+name)
			var asked atomic.Int32
			other := w.serve(func(_ http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				t.Errorf("another host is asked for %s with the token %q", r.URL, r.Header.Get("X-Auth-Token"))
			})
			var honest atomic.Bool
			storage := w.serve(func(out http.ResponseWriter, r *http.Request) {
				if !honest.Load() {
					tt.answer(out, r, other)
					return
				}
				out.Header().Set("Content-Type", "application/json")
				_, _ = out.Write([]byte(`{"volumes": []}`))
			})
			w.secret(w.ns, corev1.SecretTypeOpaque, "cloud.conf", "[Global]\ncinder-endpoint="+storage+"/v3\ntenant-name=admin\n")
			w.class(w.ns, parameter("type", "lvm"))
			w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"files-from-secret": w.ns}))
			claim := w.claim(w.ns, "data")
			w.failed(claim, 1, toBind)
			equal(t, "the exit code", w.look(claim).Annotations["flex-provisioner.io/exit-code"], tt.code)
			w.event(claim, "ProvisioningFailed", tt.claim)
			w.event(&w.jobs(claim, "provision")[0], "ContainerOutput", tt.job)
			equal(t, "the requests to the other host", asked.Load(), 0)
			honest.Store(true) // what the run may have made is undone, before the test may end
		})
	}
}

// neverEnds answers with a list of volumes that goes on for ever, or until its reader stops.
func neverEnds(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	text := []byte(`{"volumes": [], "x": "`)
	for {
		if _, err := w.Write(text); err != nil {
			return
		}
		text = bytes.Repeat([]byte("x"), 1<<20)
	}
}
