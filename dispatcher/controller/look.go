package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// looker finds the objects of one claim's UID: in the caches, or live. What does not exist is nil.
type looker interface {
	// claim finds a claim by UID; at is where it was last known to be, if anywhere.
	claim(ctx context.Context, uid types.UID, at types.NamespacedName) (*corev1.PersistentVolumeClaim, error)
	volume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	jobs(ctx context.Context, uid types.UID) ([]*batchv1.Job, error)
	pods(ctx context.Context, job *batchv1.Job) ([]*corev1.Pod, error)
	node(ctx context.Context, name string) (*corev1.Node, error)
	nodes(ctx context.Context) ([]*corev1.Node, error)
}

func (s caches) claim(_ context.Context, uid types.UID, _ types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	found, err := s.claims.ByIndex(byUID, string(uid))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0].(*corev1.PersistentVolumeClaim), nil
}

func (s caches) volume(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	obj, found, err := s.volumes.GetByKey(name)
	if err != nil || !found {
		return nil, err
	}
	return obj.(*corev1.PersistentVolume), nil
}

func (s caches) jobs(_ context.Context, uid types.UID) ([]*batchv1.Job, error) {
	var out []*batchv1.Job
	for _, ns := range s.namespaces() {
		found, err := s.spaces[ns].jobs.ByIndex(byUID, string(uid))
		if err != nil {
			return nil, err
		}
		for _, obj := range found {
			out = append(out, obj.(*batchv1.Job))
		}
	}
	return out, nil
}

func (s caches) pods(_ context.Context, job *batchv1.Job) ([]*corev1.Pod, error) {
	return s.podsOf(job)
}

func (s caches) podsOf(job *batchv1.Job) ([]*corev1.Pod, error) {
	found, err := s.spaces[job.Namespace].pods.ByIndex(byJob, job.Name)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	for _, obj := range found {
		out = append(out, obj.(*corev1.Pod))
	}
	return out, nil
}

func (s caches) node(_ context.Context, name string) (*corev1.Node, error) {
	obj, found, err := s.nodesByName.GetByKey(name)
	if err != nil || !found {
		return nil, err
	}
	return obj.(*corev1.Node), nil
}

func (s caches) nodes(context.Context) ([]*corev1.Node, error) {
	var out []*corev1.Node
	for _, obj := range s.nodesByName.List() {
		out = append(out, obj.(*corev1.Node))
	}
	return out, nil
}

// live looks at the API server itself. A cache may be behind: behind our own last write, or, after a
// restart, behind what an earlier leader saw.
type live struct {
	client     kubernetes.Interface
	namespaces []string
	at         types.NamespacedName
}

func (c *Controller) live(seen *observation) looker {
	return live{client: c.client, namespaces: c.caches.namespaces(), at: seen.at}
}

func (l live) claim(ctx context.Context, uid types.UID, at types.NamespacedName) (*corev1.PersistentVolumeClaim, error) {
	if at.Name == "" {
		at = l.at
	}
	if at.Name == "" {
		return nil, nil //nolint:nilnil // nil is the looker's word for "does not exist"
	}
	claim, err := l.client.CoreV1().PersistentVolumeClaims(at.Namespace).Get(ctx, at.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.UID != uid {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("look at the claim %s: %w", at, err)
	}
	return claim, nil
}

func (l live) volume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	pv, err := l.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil is the looker's word for "does not exist"
	}
	if err != nil {
		return nil, fmt.Errorf("look at the PersistentVolume %s: %w", name, err)
	}
	return pv, nil
}

func (l live) jobs(ctx context.Context, uid types.UID) ([]*batchv1.Job, error) {
	var out []*batchv1.Job
	for _, ns := range l.namespaces {
		list, err := l.client.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{LabelSelector: jobs.LabelMember + string(uid)})
		if err != nil {
			return nil, fmt.Errorf("list the Jobs of the claim %s in %s: %w", uid, ns, err)
		}
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}

func (l live) pods(ctx context.Context, job *batchv1.Job) ([]*corev1.Pod, error) {
	list, err := l.client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods of the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	var out []*corev1.Pod
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

func (l live) node(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := l.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil is the looker's word for "does not exist"
	}
	if err != nil {
		return nil, fmt.Errorf("look at the node %s: %w", name, err)
	}
	return node, nil
}

func (l live) nodes(ctx context.Context) ([]*corev1.Node, error) {
	list, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	var out []*corev1.Node
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}
