//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The pauses and the number of attempts come from the Jobs: what the claim's user writes over the
// annotations neither shortens nor stops them. After max-attempts the claim is Stalled, and an edit
// of the config starts a new attempt at once.
func TestAttemptsAreCountedFromJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "attempts")
	const most = 4
	class, cm := w.service(scripted(deletes+"exit 69", map[string]string{"max-attempts": strconv.Itoa(most)}))
	claim := w.claim(class, "data")
	w.failed(claim, 1, toBind)
	forged := `{"metadata": {"annotations": {"flex-provisioner.io/attempts": "99", "flex-provisioner.io/result": null,
		"flex-provisioner.io/provision-ts": "2001-01-01T00:00:00Z"}}}`
	_, err := kube.CoreV1().PersistentVolumeClaims(w.ns).Patch(w.ctx(), claim.Name, types.MergePatchType, []byte(forged), metav1.PatchOptions{})
	w.must(err, "forge the claim's annotations")

	w.eventWithin(toBind, claim, "Stalled", "no further attempt after 4", "max-attempts")
	jobs := w.jobs(claim, "provision")
	equal(t, "attempts", len(jobs), most)
	for i, job := range jobs {
		equal(t, "the attempt of the Job "+job.Name, attemptOf(job), strconv.Itoa(i+1))
		if i > 0 {
			w.pausedAtLeast(jobs[i-1], job, time.Second<<(i-1))
		}
	}
	equal(t, "the attempts on the claim", w.look(claim).Annotations["flex-provisioner.io/attempts"], strconv.Itoa(most))
	w.always(10*time.Second, "a stalled claim may not be tried again", func(ctx context.Context) error {
		jobs, err := jobsOf(ctx, string(claim.UID), "provision")
		if err == nil && len(jobs) != most {
			err = fmt.Errorf("there are %v", names(jobs))
		}
		return err
	})

	w.edit(cm, scripted(deletes+offer, nil))
	w.bound(claim)
	jobs = w.jobs(claim, "provision")
	last := jobs[len(jobs)-1]
	equal(t, "the first attempt under the new config", attemptOf(last), "1")
	equal(t, "the undos of what the old config may have made", len(w.jobs(claim, "delete")), 1)
}

func attemptOf(job batchv1.Job) string {
	return strconv.Itoa(recordOf(job, job.Labels["flex-provisioner.io/claim-uid"]).Attempt)
}

// record is what a Job records of a claim, as far as these tests read it.
type record struct {
	UID     string          `json:"uid"`
	Attempt int             `json:"attempt"`
	Outcome json.RawMessage `json:"outcome"`
}

// recordOf returns what a Job records of a claim: the line of the claim in the Job's record.
func recordOf(job batchv1.Job, uid string) record {
	for line := range strings.Lines(job.Annotations["flex-provisioner.io/record"]) {
		var r record
		if json.Unmarshal([]byte(line), &r) == nil && r.UID == uid {
			return r
		}
	}
	return record{}
}

func (w *world) pausedAtLeast(first, second batchv1.Job, least time.Duration) {
	w.t.Helper()
	if pause := second.CreationTimestamp.Sub(ended(first).LastTransitionTime.Time); pause < least {
		w.t.Errorf("the Job %s came %s after the one before it, not %s or more", second.Name, pause, least)
	}
}

// What a run does to itself counts: it is out of time, or out of memory.
func TestTimeoutAndOutOfMemoryCountAsAttempts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		more   map[string]string
		reason string
	}{
		"timeout": {"trap 'exit 143' TERM; sleep 300 & wait", map[string]string{"timeout": "3s"}, "DeadlineExceeded"},
		"memory":  {"hog=x; while :; do hog=$hog$hog; done", nil, "OOMKilled"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, name)
			class, _ := w.service(scripted(deletes+tt.script, tt.more, func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("48Mi")}
			}))
			claim := w.claim(class, "data")
			w.failed(claim, 2, toBind)
			w.event(claim, "ProvisioningFailed", tt.reason, "attempt 1", "next attempt in 1s")
			w.event(claim, "ProvisioningFailed", tt.reason, "attempt 2", "next attempt in 2s")
		})
	}
}

// A drained pod is no failure of the image: the run is repeated after 10 s and counts as the same
// attempt.
func TestDrainedPodDoesNotCountAsAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "drained")
	gate := w.newGate()
	class, _ := w.service(scripted(deletes+fmt.Sprintf("until wget -q -O /dev/null %s; do sleep 1; done\n", gate.url)+offer, nil))
	claim := w.claim(class, "data")
	w.reached(gate)
	first := w.onlyJob(claim, "provision")
	pod := w.onlyPod(first)
	w.must(kube.CoreV1().Pods(pod.Namespace).EvictV1(w.ctx(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
	}), "evict the pod")
	w.jobEnded(claim, "provision")
	gate.open()

	w.bound(claim)
	jobs := w.jobs(claim, "provision")
	equal(t, "Jobs", len(jobs), 2)
	for _, job := range jobs {
		equal(t, "the attempt of the Job "+job.Name, attemptOf(job), "1")
	}
	w.pausedAtLeast(jobs[0], jobs[1], 10*time.Second)
	w.event(claim, "ProvisioningFailed", "attempt 1", "next attempt in 10s")
	equal(t, "the attempts on the claim", w.look(claim).Annotations["flex-provisioner.io/attempts"], "1")
}
