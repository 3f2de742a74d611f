package controller_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// canary is part of everything that the claims' users choose.
const canary = "canary"

// ofUser gives a claim a namespace, labels and annotations that a user might choose.
func ofUser(c *corev1.PersistentVolumeClaim) {
	c.Namespace = canary + "-namespace"
	c.Labels = map[string]string{canary + "-label": canary + "-value"}
	c.Annotations = map[string]string{canary + "-annotation": canary + "-text"}
}

// page is all of /metrics.
func (w *world) page() string {
	answer := httptest.NewRecorder()
	w.metrics.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}

// mustNotName fails the test if /metrics has anything of the users' claims. What is not counted
// names nothing either, so series must be there.
func (w *world) mustNotName(claims []*corev1.PersistentVolumeClaim, series ...string) {
	w.T.Helper()
	shown := w.page()
	for _, part := range series {
		if !strings.Contains(shown, part) {
			w.T.Errorf("/metrics does not show %s: is the dispatcher busy?", part)
		}
	}
	words := []string{canary}
	for _, claim := range claims {
		words = append(words, string(claim.UID))
	}
	for line := range strings.Lines(shown) {
		for _, word := range words {
			if strings.Contains(line, word) {
				w.T.Errorf("/metrics has %s: %s", word, line)
			}
		}
	}
}

// Whoever has the token of a run chooses the class of the PV of its claim. Kubernetes binds the claim to it
// (pvs.Differs), and each such class made series, which the process keeps.
func TestTheClassOfAPVMakesNoSeries(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(func(r *fakecluster.Run) fakecluster.Exit {
			r.CreateVolume()
			r.WritePV(func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "shop-" + r.Request.Name })
			return fakecluster.Exit{}
		}))
		w.Start()
		claim := w.CreateClaim(canary)
		w.Until("it is bound", time.Minute, w.IsBound(canary))
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("the volume is deleted", 10*time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 && w.Empty() })
		w.mustNotName([]*corev1.PersistentVolumeClaim{claim}, `controller_persistentvolume_delete_total{class="gold"`)
	})
}

// A claim of a class that does not exist is bound to whatever PV names it, such as that of a thief of a token.
func TestTheClassOfAClaimMakesNoSeries(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new(canary) })
		w.Advance(10 * time.Second)
		w.rescuedBy(contract.PVName(string(claim.UID)), claim, "/x", func(pv *corev1.PersistentVolume) {
			pv.Annotations = map[string]string{contract.AnnClaimUID: string(claim.UID), contract.AnnProvisionedBy: contract.ProvisionerName}
			pv.Spec.StorageClassName = canary
		})
		w.Until("it is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Minute)
		w.mustNotName([]*corev1.PersistentVolumeClaim{claim}, `flex_dispatcher_claim_to_bound_seconds_count{class=""`)
	})
}

// Whoever may read /metrics learns nothing of a claim by its name: not while it waits, runs, fails
// or is bound, nor when it is cloned, expanded and deleted.
func TestMetricsNameNoClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		fails := fakecluster.Script(fakecluster.Fails(75, "claim: "+canary+"-message"))
		w.SetUpExpandableGold(func(r *fakecluster.Run) fakecluster.Exit {
			if strings.HasPrefix(r.Request.Name, canary+"-late") {
				return fakecluster.Fails(73, canary+"-full")(r)
			}
			return fails(r)
		}, "max-parallel", "1", "data-sources", "PersistentVolumeClaim")
		w.Start()
		claims := []*corev1.PersistentVolumeClaim{w.CreateClaim(canary+"-first", ofUser), w.CreateClaim(canary+"-second", ofUser)}
		w.Until("one waits for a slot", time.Minute, func() bool {
			return strings.Contains(w.page(), `flex_dispatcher_queue{class="gold",verb="provision"} 1`)
		})
		w.mustNotName(claims, "flex_dispatcher_queue{", "flex_dispatcher_jobs{")
		w.Until("both are bound", 10*time.Minute, w.AllBound)

		claims = append(claims, w.CreateClaim(canary+"-clone", ofUser, copyOf(claims[0].Name)))
		w.Until("the clone is bound", 10*time.Minute, w.AllBound)
		fakecluster.Update(w, fakecluster.User, claims[0], func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		w.Until("it has grown", 10*time.Minute, func() bool { return len(w.RunsOf(contract.Expand)) > 0 })
		claims = append(claims, w.CreateClaim(canary+"-late", ofUser))
		fakecluster.Delete(w, fakecluster.User, claims[1])
		w.Until("another is deleted", 10*time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) > 0 })
		w.Advance(10 * time.Minute)
		w.mustNotName(claims,
			`controller_persistentvolumeclaim_provision_total{class="gold",source="PersistentVolumeClaim"}`,
			`controller_persistentvolumeclaim_provision_failed_total{class="gold"`, `controller_persistentvolume_delete_total{class="gold"}`,
			`flex_dispatcher_runs_total{class="gold",verb="expand"`, `flex_dispatcher_claim_to_bound_seconds`,
		)
	})
}
