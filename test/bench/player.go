package main

import (
	"context"
	"encoding/json"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/test/bench/play"
)

const players = 32

// player plays the nodes: what play decides of each pod is done once.
type player struct {
	node, container kubernetes.Interface
	queue           workqueue.TypedRateLimitingInterface[string]
	pods            cache.Store
	mu              sync.Mutex
	finished        map[types.UID]bool
}

// startPlayer plays until the context ends.
func startPlayer(ctx context.Context, c *cluster) error {
	node, err := c.as(ctx, userNode)
	if err != nil {
		return err
	}
	container, err := c.as(ctx, userContainer)
	if err != nil {
		return err
	}
	p := &player{
		node: node, container: container, finished: map[types.UID]bool{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	factory := informers.NewSharedInformerFactoryWithOptions(node, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}))
	informer := factory.Core().V1().Pods().Informer()
	p.pods = informer.GetStore()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    p.enqueue,
		UpdateFunc: func(_, pod any) { p.enqueue(pod) },
	}); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	for range players {
		go p.work(ctx)
	}
	context.AfterFunc(ctx, p.queue.ShutDown)
	return nil
}

func (p *player) enqueue(obj any) {
	pod, isPod := obj.(*corev1.Pod)
	if isPod && play.Of(pod) != play.Wait {
		p.queue.Add(pod.Namespace + "/" + pod.Name)
	}
}

func (p *player) work(ctx context.Context) {
	for {
		key, ended := p.queue.Get()
		if ended {
			return
		}
		if err := p.playPod(ctx, key); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to play a pod", "pod", key)
			p.queue.AddRateLimited(key)
		} else {
			p.queue.Forget(key)
		}
		p.queue.Done(key)
	}
}

func (p *player) playPod(ctx context.Context, key string) error {
	obj, exists, err := p.pods.GetByKey(key)
	pod, isPod := obj.(*corev1.Pod)
	if err != nil || !exists || !isPod {
		return err
	}
	switch play.Of(pod) {
	case play.Finish:
		return p.finish(ctx, pod)
	case play.Remove:
		err := p.node.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	case play.Wait:
	}
	return nil
}

// finish writes what the container would write, and reports that it has ended. The cache may show
// an older state of the pod for a moment.
func (p *player) finish(ctx context.Context, pod *corev1.Pod) error {
	if p.isFinished(pod.UID) {
		return nil
	}
	pvs, err := play.PVs(pod)
	if err != nil {
		return err
	}
	for _, pv := range pvs {
		if _, err := p.container.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": play.Finished(pod, metav1.Now())})
	if err != nil {
		return err
	}
	_, err = p.node.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status") // as a kubelet does
	if err == nil || apierrors.IsNotFound(err) {
		p.setFinished(pod.UID)
		return nil
	}
	return err
}

func (p *player) isFinished(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.finished[uid]
}

func (p *player) setFinished(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished[uid] = true
}
