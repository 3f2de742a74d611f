package run_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
)

// sent is a transport that counts requests. Each has a connection of its own.
type sent struct {
	transport http.Transport
	// slow is how long each request takes at least.
	slow time.Duration

	mu sync.Mutex
	// open is how many are on their way, most the largest number of these.
	open, most int
	// all are the requests: method, path and query.
	all []string
}

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.open++
	s.most = max(s.most, s.open)
	s.all = append(s.all, r.Method+" "+r.URL.RequestURI())
	s.mu.Unlock()
	time.Sleep(s.slow)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.open--
	}()
	return s.transport.RoundTrip(r)
}

// count returns how many requests contain a text.
func (s *sent) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, one := range s.all {
		if strings.Contains(one, text) {
			n++
		}
	}
	return n
}

const clusterUID = "5f6c1a3e-1111-4222-8333-944455556666"

// uidOf returns the UID of the i-th claim of a batch.
func uidOf(i int) string { return fmt.Sprintf("8d5a6f3c-1f0e-4c11-9a55-%012d", i) }

// batch runs a verb for n claims. On provision pv.json holds skeletons, else the PVs. edit may
// change a request and its PV.
func (w *world) batch(t *testing.T, verb contract.Verb, n int, edit func(int, *contract.Request, *corev1.PersistentVolume)) run.Result {
	t.Helper()
	claims := make([]int, n)
	for i := range claims {
		claims[i] = i
	}
	return w.batchOf(t, verb, claims, edit)
}

// batchOf runs a verb for some of the claims.
func (w *world) batchOf(t *testing.T, verb contract.Verb, claims []int, edit func(int, *contract.Request, *corev1.PersistentVolume)) run.Result {
	t.Helper()
	requests := contract.Requests{Version: contract.Version, Verb: verb}
	list := corev1.PersistentVolumeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for _, i := range claims {
		request := w.request(verb, func(r *contract.Request) {
			r.UID, r.PVName, r.Name, r.ClusterUID = uidOf(i), contract.PVName(uidOf(i)), fmt.Sprintf("data-%d", i), clusterUID
		}).Items[0]
		object := w.pvOf(t, uidOf(i))
		if object == nil {
			object = skeletonOf(i)
		}
		if edit != nil {
			edit(i, &request, object)
		}
		requests.Items, list.Items = append(requests.Items, request), append(list.Items, *object)
	}
	if len(claims) == 1 {
		return w.run(t, requests, list.Items[0])
	}
	return w.run(t, requests, list)
}

func skeletonOf(i int) *corev1.PersistentVolume {
	s := skeleton()
	s.Name, s.Annotations[contract.AnnClaimUID], s.Spec.ClaimRef.UID = contract.PVName(uidOf(i)), uidOf(i), types.UID(uidOf(i))
	return s
}

// pvOf returns the PV of a claim, or nil.
func (w *world) pvOf(t *testing.T, uid string) *corev1.PersistentVolume {
	t.Helper()
	all := w.pvs(t)
	at := slices.IndexFunc(all, func(one corev1.PersistentVolume) bool { return one.Name == contract.PVName(uid) })
	if at < 0 {
		return nil
	}
	return &all[at]
}

// codes returns the exit codes of the claims by the results in a message.
func codes(message string) map[string]int32 {
	found := map[string]int32{}
	for _, r := range contract.DecodeResults(message) {
		found[r.UID] = *r.Code
	}
	return found
}

// said returns the message of the i-th claim's result.
func said(message string, i int) string {
	for _, r := range contract.DecodeResults(message) {
		if r.UID == uidOf(i) {
			return r.Message
		}
	}
	return ""
}
