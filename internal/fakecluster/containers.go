package fakecluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Program is what a container runs in a cluster that is stepped through, until its end or that of
// ctx. Each of its requests is a move: those to Kubernetes by themselves, and others if it calls
// Request before.
type Program func(ctx context.Context, c *Container) Exit

// Container is a container that runs a Program.
type Container struct {
	// Pod is its pod when it started.
	Pod *corev1.Pod
	// Kube is its client.
	Kube kubernetes.Interface

	runs    []*Run
	cancel  context.CancelFunc
	mu      sync.Mutex
	waiting map[string][]chan struct{} // requests, by what they are
	exit    *Exit
	members []*member // of a container with phases
}

// File returns a file of the directory contract.Dir.
func (k *Container) File(name string) string { return file(&k.Pod.ObjectMeta, &k.Pod.Spec, name) }

// Env returns the variables that its pod gives it.
func (k *Container) Env() map[string]string {
	out := map[string]string{}
	for _, v := range k.Pod.Spec.Containers[0].Env {
		out[v.Name] = v.Value
	}
	return out
}

// Verb returns the verb that it is called with.
func (k *Container) Verb() contract.Verb { return contract.Verb(VerbOf(&k.Pod.Spec)) }

// Request waits until a move lets the container make a request. It returns an error if the
// container was killed.
func (k *Container) Request(ctx context.Context, what string) error {
	proceed := make(chan struct{})
	k.mu.Lock()
	k.waiting[what] = append(k.waiting[what], proceed)
	k.mu.Unlock()
	select {
	case <-proceed:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// moves returns the container's requests that wait.
func (k *Container) moves() []Move {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []Move
	for _, what := range slices.Sorted(maps.Keys(k.waiting)) {
		out = append(out, Move{"container " + k.Pod.Name + ": " + what, func() { k.proceed(what) }})
	}
	return out
}

// proceed lets a request be made, the first of those that are the same.
func (k *Container) proceed(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.waiting[what][0])
	if k.waiting[what] = k.waiting[what][1:]; len(k.waiting[what]) == 0 {
		delete(k.waiting, what)
	}
}

// ended returns how the container has ended by itself, or nil.
func (k *Container) ended() *Exit {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.exit
}

// startProgram starts the container of a pod.
func (c *Cluster) startProgram(pod *corev1.Pod, program Program) {
	ctx, cancel := context.WithCancel(c.Context())
	k := &Container{Pod: pod, runs: c.runsOf(pod), cancel: cancel, waiting: map[string][]chan struct{}{}}
	k.Kube = containerClient{c.Server.client("image", nil), k}
	c.containers[pod.UID] = k
	go func() {
		exit := program(ctx, k)
		k.mu.Lock()
		defer k.mu.Unlock()
		if ctx.Err() == nil {
			k.exit = &exit
		}
	}()
}

// runProgram starts the container of a pod, or ends the pod when the container has ended.
func (c *Cluster) runProgram(pod *corev1.Pod, program Program, late bool) {
	k := c.containers[pod.UID]
	switch {
	case k == nil:
		c.startProgram(pod, program)
	case k.ended() != nil:
		c.Runs = append(c.Runs, k.runs...)
		c.terminate(pod, *k.ended(), "")
	case late:
		c.terminate(pod, Exit{Code: sigkill}, "DeadlineExceeded")
	}
}

// isOver reports whether a container has ended by itself, or with its machine.
func (k *Container) isOver() bool { return k.ended() != nil }

// stopContainer ends what a pod's container still does.
func (c *Cluster) stopContainer(pod types.UID) {
	if k := c.containers[pod]; k != nil {
		k.cancel()
		delete(c.containers, pod)
	}
}

// stopOrphans ends the containers of pods that do not exist any more, or are deleted. The kubelet
// of a node that is lost or cut off does not know, but it knows their deadlines
// (pkg/kubelet/active_deadline.go, pastActiveDeadline).
func (c *Cluster) stopOrphans() {
	for _, k := range c.working() {
		if c.Frozen[k.Pod.Spec.NodeName] {
			continue
		}
		cutOff := c.NodeLost || c.CutOff[k.Pod.Spec.NodeName]
		pod, exists := sharedOne[*corev1.Pod](c, k.Pod.Namespace, k.Pod.Name)
		exists = exists && pod.UID == k.Pod.UID
		if exists && pod.DeletionTimestamp == nil {
			continue
		}
		if late := c.due(c.deadlineOf(k.Pod)); late || !exists && !cutOff {
			c.stopContainer(k.Pod.UID)
		}
	}
}

// working returns the containers that run a program, by their names.
func (c *Cluster) working() []*Container {
	var out []*Container
	for _, k := range c.containers {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b *Container) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	return out
}

// PowerOff ends the containers of a node, of which its kubelet says nothing.
func (c *Cluster) PowerOff(node string) {
	for _, k := range c.working() {
		switch {
		case k.Pod.Spec.NodeName != node:
		case k.members != nil:
			k.exit = &Exit{Code: sigkill} // the kubelet reports it if it ever comes back
		default:
			c.stopContainer(k.Pod.UID)
		}
	}
}
