package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// walker changes the objects of one claim, one step after the other.
type walker struct {
	*testing.T
	client kubernetes.Interface
}

// must fails the test at an error.
func (w walker) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// run runs a Job with a gated pod until its container has ended.
func (w walker) run(name string) {
	w.Helper()
	jobs, pods := w.client.BatchV1().Jobs("ns"), w.client.CoreV1().Pods("ns")
	meta := metav1.ObjectMeta{Name: name, UID: types.UID(name)}
	job, pod := &batchv1.Job{ObjectMeta: meta}, &corev1.Pod{ObjectMeta: meta}
	job.Finalizers = []string{"record"}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "confirm"}}
	_, err := jobs.Create(w.Context(), job, metav1.CreateOptions{})
	w.must(err)
	_, err = pods.Create(w.Context(), pod, metav1.CreateOptions{})
	w.must(err)
	pod.Spec = corev1.PodSpec{NodeName: realNode}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
	}
	_, err = pods.Update(w.Context(), pod, metav1.UpdateOptions{})
	w.must(err)
}

// end ends the pod of a Job, and records its outcome.
func (w walker) end(name string) {
	w.Helper()
	jobs, pods := w.client.BatchV1().Jobs("ns"), w.client.CoreV1().Pods("ns")
	pod, err := pods.Get(w.Context(), name, metav1.GetOptions{})
	w.must(err)
	pod.Status.Phase = corev1.PodSucceeded
	_, err = pods.Update(w.Context(), pod, metav1.UpdateOptions{})
	w.must(err)
	job, err := jobs.Get(w.Context(), name, metav1.GetOptions{})
	w.must(err)
	job.Finalizers = nil
	_, err = jobs.Update(w.Context(), job, metav1.UpdateOptions{})
	w.must(err)
}

// mustHave waits until a trace has these steps, and fails the test if it does not get them or has
// others.
func (w walker) mustHave(trace *report.Trace, want ...string) {
	w.Helper()
	var got []string
	for end := time.Now().Add(10 * time.Second); len(got) < len(want) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		got = nil
		for _, step := range trace.Steps() {
			got = append(got, step.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Error(diff)
	}
}

// What exists before has no step of the claim, and the pod that has provisioned may end while its
// claim is deleted.
func TestTheTracerNotesTheStepsOfOneClaim(t *testing.T) {
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "ns", UID: "other"}}
	w := walker{t, fake.NewClientset(other)}
	tr, err := startTracer(t.Context(), w.client)
	w.must(err)
	claims, pvs := w.client.CoreV1().PersistentVolumeClaims("ns"), w.client.CoreV1().PersistentVolumes()
	claim := claimOf("one", className, nil)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "one"}}

	trace := tr.begin(false)
	claim.Namespace, claim.Status.Phase = "ns", corev1.ClaimBound
	w.run("provision")
	_, err = pvs.Create(t.Context(), pv, metav1.CreateOptions{})
	w.must(err)
	_, err = claims.Create(t.Context(), claim, metav1.CreateOptions{})
	w.must(err)
	w.mustHave(trace, report.JobCreated, report.PodCreated, report.GateOpened, report.PodScheduled,
		report.ContainerStarted, report.PVWritten, report.ContainerEnded, report.Bound)

	trace = tr.begin(true)
	w.must(claims.Delete(t.Context(), "one", metav1.DeleteOptions{}))
	pv.Status.Phase = corev1.VolumeReleased
	_, err = pvs.Update(t.Context(), pv, metav1.UpdateOptions{})
	w.must(err)
	w.run("delete")
	w.end("provision")
	w.end("delete")
	w.must(pvs.Delete(t.Context(), "one", metav1.DeleteOptions{}))
	w.mustHave(trace, report.ClaimGone, report.Released, report.JobCreated, report.PodCreated,
		report.EarlierPodEnded, report.GateOpened, report.PodScheduled, report.ContainerStarted,
		report.ContainerEnded, report.Recorded, report.PVGone)
}
