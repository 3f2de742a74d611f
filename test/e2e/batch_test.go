//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Many claims at once of a class that runs one Job at a time: those that wait share the next Job. A
// claim that cannot be provisioned is the only one with a failure event, and all others are bound
// and deleted.
func TestManyClaimsShareFewJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "batch")
	const many = 24
	var good []*corev1.PersistentVolumeClaim
	var bad *corev1.PersistentVolumeClaim
	for i := range many {
		if i == many/2 {
			bad = w.claim(batchClass, "bad", asBlock)
		}
		good = append(good, w.claim(batchClass, fmt.Sprintf("good-%02d", i)))
	}
	started := time.Now()
	w.all(good, 4*time.Minute, "to be bound, with the result of the whole batch", succeeded)
	for _, claim := range good {
		pv := w.bound(claim)
		equal(t, "the export of "+claim.Name, pv.Spec.NFS.Path, "/exports/"+pv.Name)
		equal(t, "nodes with the directory of "+claim.Name, w.holders(claim), "[node1]")
	}
	w.failed(bad, 1, toBind)
	made := w.jobsOfAll("provision", w.claims)
	t.Logf("%d claims served by %d Jobs in %.1f s: %v", many+1, len(made), time.Since(started).Seconds(), sizes(made))
	if len(made) > many/3 {
		t.Errorf("%d Jobs for %d claims", len(made), many+1)
	}
	w.refusedAlone(bad)
	for _, claim := range good {
		w.neverFailed(claim)
	}

	for _, claim := range w.claims {
		w.deleteClaim(claim)
	}
	w.allClaims(4*time.Minute, "to have gone with all that was made", nothingLeft)
	for _, claim := range good {
		equal(t, "nodes with the directory of a deleted claim", w.holders(claim), "[]")
	}
	deletes := w.jobsOfAll("delete", good)
	t.Logf("%d volumes deleted by %d Jobs: %v", many, len(deletes), sizes(deletes))
	if len(deletes) > many/2 {
		t.Errorf("%d Jobs to delete %d volumes", len(deletes), many)
	}
}

// asBlock asks for what a directory cannot be.
func asBlock(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }

// noBlock is how the image says so.
const noBlock = "a directory cannot be a raw block device: request volumeMode Filesystem"

// refusedAlone: the claim was in a batch, and says why it in particular cannot be served.
func (w *world) refusedAlone(bad *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	now := w.look(bad)
	equal(w.t, "the bad one's exit code", now.Annotations["flex-provisioner.io/exit-code"], "65")
	equal(w.t, "the bad one's message", now.Annotations["flex-provisioner.io/message"], noBlock)
	w.event(now, "ProvisioningFailed", noBlock, "BadRequest", "exit code 65")
	if job := w.onlyJob(bad, "provision"); len(claimsOf(job)) < 2 {
		w.t.Errorf("the bad one was alone in %s: nothing is shown of its neighbours", job.Name)
	}
}

// neverFailed checks that a claim has no event but those of its success.
func (w *world) neverFailed(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	list, err := events(w.ctx(), claim.Namespace, claim.UID)
	w.must(err, "look at the claim's events")
	for _, e := range list {
		if strings.HasPrefix(e.Reason, "ProvisioningFailed") || strings.Contains(e.Note, "raw block device") {
			w.t.Errorf("the claim %s was told %s: %s", claim.Name, e.Reason, e.Note)
		}
	}
	now := w.look(claim)
	equal(w.t, "the attempts for "+claim.Name, now.Annotations["flex-provisioner.io/attempts"], "1")
	equal(w.t, "the message on "+claim.Name, now.Annotations["flex-provisioner.io/message"], "")
}

// jobsOfAll are the Jobs of a verb that served any of some claims, the oldest first.
func (w *world) jobsOfAll(verb string, claims []*corev1.PersistentVolumeClaim) []batchv1.Job {
	w.t.Helper()
	seen := map[string]batchv1.Job{}
	for _, claim := range claims {
		for _, job := range w.jobs(claim, verb) {
			seen[job.Name] = job
		}
	}
	var out []batchv1.Job
	for _, job := range seen {
		out = append(out, job)
	}
	slices.SortFunc(out, func(a, b batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return out
}

// claimsOf are the UIDs that a Job serves.
func claimsOf(job batchv1.Job) []string {
	return strings.Split(job.Annotations["flex-provisioner.io/uids"], ",")
}

// sizes are how many claims each Job served.
func sizes(jobs []batchv1.Job) []int {
	var out []int
	for _, job := range jobs {
		out = append(out, len(claimsOf(job)))
	}
	return out
}

// The pod of a batch creates the PVs of its class, and no others, and changes none; without the
// permission it creates only its own claim's.
func TestBatchWritesNoPVOfAnotherClass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "batch-pv")
	const uid, other = "11111111-2222-3333-4444-666666666666", "99999999-2222-3333-4444-666666666666"
	script := `try() { kubectl create -o name -f - 2>&1 <<E || true
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pvc-$1","annotations":{"flex-provisioner.io/claim-uid":"$1"}},
 "spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"storageClassName":"$2","nfs":{"server":"192.0.2.10","path":"/a"},
 "claimRef":{"namespace":"default","name":"c","uid":"$3"}}}
E
}
try OTHER gold OTHER
try OTHER CLASS UID
try OTHER CLASS OTHER`
	script = strings.NewReplacer("UID", uid, "OTHER", other, "CLASS", batchClass).Replace(script)
	w.remove(func() {
		w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), "pvc-"+other, metav1.DeleteOptions{}), "the PV")
	})
	const denied = "may write only the PersistentVolume of its own claim"
	for _, tt := range []struct {
		pod, account string
		want         []string
	}{
		{"provision-" + uid + "-1-aaaaa", "directory-provisioner", []string{denied, denied, denied}},
		{"delete-" + uid + "-1-aaaaa", "file-server-provisioner", []string{denied, denied, denied}},
		{"provision-" + uid + "-2-aaaaa", "file-server-provisioner", []string{denied, "must name its claim by UID", "persistentvolume/pvc-" + other}},
	} {
		said := strings.Split(strings.TrimSpace(w.runAs(nodeNamespace, tt.pod, tt.account, script)), "\n")
		if len(said) != len(tt.want) {
			t.Fatalf("the pod %s said %q", tt.pod, said)
		}
		for i, words := range tt.want {
			contains(t, fmt.Sprintf("%s, attempt %d", tt.pod, i+1), said[i], words)
		}
	}
	w.eventually(time.Minute, "the PV to be there", func(ctx context.Context) error {
		_, err := kube.CoreV1().PersistentVolumes().Get(ctx, "pvc-"+other, metav1.GetOptions{})
		return err
	})
}
