package main

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// tracer notes when it sees the steps of a claim that comes alone. The times in objects are whole
// seconds. Whatever Job and pod are created first belong to the claim.
type tracer struct {
	mu    sync.Mutex
	trace *report.Trace
	// deletes is set while the claim is deleted.
	deletes  bool
	job, pod types.UID
	// held is set once the Job was seen with a finalizer.
	held bool
}

// begin starts the trace of a claim that is created or deleted now.
func (t *tracer) begin(deletes bool) *report.Trace {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trace, t.deletes = report.NewTrace(time.Now()), deletes
	t.job, t.pod, t.held = "", "", false
	return t.trace
}

// startTracer watches until the context ends.
func startTracer(ctx context.Context, client kubernetes.Interface) (*tracer, error) {
	t := &tracer{}
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	for _, one := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{core.PersistentVolumeClaims().Informer(), t.handler(t.seeClaim, report.ClaimGone)},
		{core.PersistentVolumes().Informer(), t.handler(t.seePV, report.PVGone)},
		{factory.Batch().V1().Jobs().Informer(), t.handler(t.seeJob, "")},
		{core.Pods().Informer(), t.handler(t.seePod, "")},
	} {
		if _, err := one.informer.AddEventHandler(one.handler); err != nil {
			return nil, err
		}
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	return t, nil
}

// handler returns what sees an object, and whether it is new. gone is the step that its end is in a
// deletion, if it is one.
func (t *tracer) handler(see func(obj any, isNew bool), gone string) cache.ResourceEventHandler {
	traced := func(see func()) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.trace != nil {
			see()
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, isInitial bool) { traced(func() { see(obj, !isInitial) }) },
		UpdateFunc: func(_, obj any) { traced(func() { see(obj, false) }) },
		DeleteFunc: func(any) { traced(func() { t.note(gone, t.deletes && gone != "") }) },
	}
}

// note notes a step that is done.
func (t *tracer) note(step string, isDone bool) {
	if isDone {
		t.trace.Note(step, time.Now())
	}
}

func (t *tracer) seeClaim(obj any, _ bool) {
	if claim, is := obj.(*corev1.PersistentVolumeClaim); is {
		t.note(report.Bound, !t.deletes && claim.Status.Phase == corev1.ClaimBound)
	}
}

func (t *tracer) seePV(obj any, isNew bool) {
	if pv, is := obj.(*corev1.PersistentVolume); is {
		t.note(report.PVWritten, isNew && !t.deletes)
		t.note(report.Released, pv.Status.Phase == corev1.VolumeReleased)
	}
}

// seeJob also notes when the Job is held no longer: our dispatcher records that a delete is done
// with the same write.
func (t *tracer) seeJob(obj any, isNew bool) {
	job, is := obj.(*batchv1.Job)
	if !is {
		return
	}
	if isNew && t.job == "" {
		t.job = job.UID
	}
	if job.UID == t.job {
		t.note(report.JobCreated, true)
		t.note(report.Recorded, t.held && len(job.Finalizers) == 0)
		t.held = t.held || len(job.Finalizers) > 0
	}
}

func (t *tracer) seePod(obj any, isNew bool) {
	pod, is := obj.(*corev1.Pod)
	if !is {
		return
	}
	if isNew && t.pod == "" {
		t.pod = pod.UID
	}
	if pod.UID != t.pod {
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		t.note(report.EarlierPodEnded, t.deletes && ended)
		return
	}
	t.note(report.PodCreated, true)
	t.note(report.GateOpened, len(pod.Spec.SchedulingGates) == 0)
	t.note(report.PodScheduled, pod.Spec.NodeName != "")
	for _, s := range pod.Status.ContainerStatuses {
		t.note(report.ContainerStarted, s.State.Running != nil || s.State.Terminated != nil)
		t.note(report.ContainerEnded, s.State.Terminated != nil)
	}
}
