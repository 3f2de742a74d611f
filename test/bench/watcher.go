package main

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// watcher notes when claims are bound, PVs are deleted and Jobs are complete.
type watcher struct {
	mu          sync.Mutex
	bound, gone *report.Timeline
}

// provisioned lets a timeline collect what is provisioned from now on.
func (w *watcher) provisioned(line *report.Timeline) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bound = line
}

// deleted lets a timeline collect what is deleted from now on.
func (w *watcher) deleted(line *report.Timeline) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = line
}

func (w *watcher) noteProvisioned(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bound != nil {
		w.bound.Done(name, time.Now())
	}
}

func (w *watcher) noteDeleted(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone != nil {
		w.gone.Done(name, time.Now())
	}
}

// startWatcher watches until the context ends.
func startWatcher(ctx context.Context, client kubernetes.Interface) (*watcher, error) {
	w := &watcher{}
	ours := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(benchNamespace))
	all := informers.NewSharedInformerFactory(client, 0)
	for _, one := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandlerFuncs
	}{
		{ours.Core().V1().PersistentVolumeClaims().Informer(), onChange(w.seeClaim)},
		{ours.Batch().V1().Jobs().Informer(), onChange(w.seeJob)},
		{all.Core().V1().PersistentVolumes().Informer(), cache.ResourceEventHandlerFuncs{DeleteFunc: w.seeNoPV}},
	} {
		if _, err := one.informer.AddEventHandler(one.handler); err != nil {
			return nil, err
		}
	}
	for _, factory := range []informers.SharedInformerFactory{ours, all} {
		factory.StartWithContext(ctx)
		factory.WaitForCacheSyncWithContext(ctx)
	}
	return w, nil
}

func onChange(see func(any)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }}
}

func (w *watcher) seeClaim(obj any) {
	if claim, is := obj.(*corev1.PersistentVolumeClaim); is && claim.Status.Phase == corev1.ClaimBound {
		w.noteProvisioned(claim.Name)
	}
}

func (w *watcher) seeJob(obj any) {
	job, is := obj.(*batchv1.Job)
	if !is {
		return
	}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			w.noteProvisioned(job.Name)
		}
	}
}

// seeNoPV notes that the PV of a claim was deleted.
func (w *watcher) seeNoPV(obj any) {
	if last, missed := obj.(cache.DeletedFinalStateUnknown); missed {
		obj = last.Obj
	}
	if pv, is := obj.(*corev1.PersistentVolume); is && pv.Spec.ClaimRef != nil {
		w.noteDeleted(pv.Spec.ClaimRef.Name)
	}
}
