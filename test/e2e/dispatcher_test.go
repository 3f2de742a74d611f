//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	dispatcher       = "flex-dispatcher" // Deployment and lease
	dispatcherPods   = "app.kubernetes.io/name=flex-dispatcher"
	dispatcherNumber = 2
)

// dispatchersReady reports an error unless exactly as many replicas run as there should be.
func dispatchersReady(ctx context.Context) error {
	d, err := kube.AppsV1().Deployments(systemNamespace).Get(ctx, dispatcher, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("look at the dispatcher's Deployment: %w", err)
	}
	s := d.Status
	if s.ObservedGeneration < d.Generation || s.ReadyReplicas != dispatcherNumber || s.UpdatedReplicas != dispatcherNumber || s.Replicas != dispatcherNumber {
		return fmt.Errorf("of %d dispatchers %d are ready and %d new", s.Replicas, s.ReadyReplicas, s.UpdatedReplicas)
	}
	return nil
}

func replicas(ctx context.Context) ([]corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(systemNamespace).List(ctx, labelled(dispatcherPods))
	if err != nil {
		return nil, fmt.Errorf("list the dispatcher's pods: %w", err)
	}
	return list.Items, nil
}

// scale sets how many dispatchers there are to be.
func (w *world) scale(to int32) {
	w.t.Helper()
	w.eventually(20*time.Second, "the dispatcher's Deployment to take its scale", func(ctx context.Context) error {
		scale, err := kube.AppsV1().Deployments(systemNamespace).GetScale(ctx, dispatcher, metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = to
		_, err = kube.AppsV1().Deployments(systemNamespace).UpdateScale(ctx, dispatcher, scale, metav1.UpdateOptions{})
		return err
	})
}

// startDispatchers brings both back.
func (w *world) startDispatchers() {
	w.t.Helper()
	w.scale(dispatcherNumber)
	w.eventually(toBind, "the dispatchers to be ready", dispatchersReady)
}

// killDispatchers ends every dispatcher by SIGKILL, and keeps any from being started again. A
// replica that the kubelet restarts before it learns that can do no harm: its lease lasts 15 s, and
// no other replica may lead until then.
func (w *world) killDispatchers() {
	w.t.Helper()
	w.whenDone(w.startDispatchers)
	killed := 0
	for _, node := range nodes {
		pids, err := dispatchers(w.ctx(), node)
		w.must(err, "find what to kill")
		for _, pid := range pids {
			_, err := onNode(w.ctx(), node, "kill", "-KILL", pid)
			w.must(err, "kill the dispatcher on node"+node)
			killed++
		}
	}
	if killed < dispatcherNumber {
		w.t.Fatalf("%d dispatchers were found and killed, not %d", killed, dispatcherNumber)
	}
	w.scale(0)
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	w.must(kube.CoreV1().Pods(systemNamespace).DeleteCollection(w.ctx(), now, labelled(dispatcherPods)), "delete the dispatcher's pods")
	w.eventually(toBind, "every dispatcher to be dead", noReplicaRuns)
}

func noReplicaRuns(ctx context.Context) error {
	pods, err := replicas(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		pids, err := dispatchers(ctx, node)
		if err != nil {
			return err
		}
		if len(pods)+len(pids) > 0 {
			return fmt.Errorf("there are %d pods, and on node%s %d processes", len(pods), node, len(pids))
		}
	}
	return nil
}

// leader is the name of the pod that holds the lease.
func leader(ctx context.Context) (string, error) {
	lease, err := kube.CoordinationV1().Leases(systemNamespace).Get(ctx, dispatcher, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("look at the lease: %w", err)
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", fmt.Errorf("nobody holds the lease")
	}
	pod, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod, nil
}

// deleteReplica ends one replica as a drain would, with time to release the lease.
func (w *world) deleteReplica(pod string) {
	w.t.Helper()
	w.must(kube.CoreV1().Pods(systemNamespace).Delete(w.ctx(), pod, metav1.DeleteOptions{}), "delete the pod "+pod)
}
