package controller_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

const kubelet = "kubelet"

// image is what a container does. It takes its time and then does it all at once.
type image struct {
	takes time.Duration // 0: a second
	does  func(*run) ending
	// batch, when set, does several at once.
	batch func([]*run) ending
}

// ending is how a container ends.
type ending struct {
	code    int32
	message string
}

// run is one container's run.
type run struct {
	w       *world
	pod     *corev1.Pod
	image   string
	at      time.Time
	verb    contract.Verb
	request contract.Request
	pv      *corev1.PersistentVolume
	// number among the runs of this verb for this claim, from 1.
	number int
}

// kubelets run every pod, whatever its node.
func (w *world) kubelets() {
	w.growFileSystems()
	for _, pod := range every[*corev1.Pod](w) {
		switch {
		case over(pod):
		case pod.Spec.NodeName == "":
			w.schedule(pod)
		case pod.DeletionTimestamp != nil && !w.lostNode:
			w.terminate(pod, 137, "", "")
		case pod.Status.Phase == corev1.PodPending:
			w.oneAtATime(pod)
			edit(w, kubelet, pod, func(p *corev1.Pod) { p.Status.Phase, p.Status.StartTime = corev1.PodRunning, new(metav1.Now()) })
		}
	}
	for _, pod := range every[*corev1.Pod](w) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			w.carryOn(pod)
		}
	}
}

// oneAtATime is the law that no two runs of a claim overlap.
func (w *world) oneAtATime(pod *corev1.Pod) {
	for _, other := range every[*corev1.Pod](w) {
		for _, uid := range claimsOf(pod) {
			if slices.Contains(claimsOf(other), uid) && other.Status.Phase == corev1.PodRunning {
				w.t.Errorf("%s starts while %s runs", pod.Name, other.Name)
			}
		}
	}
}

func (w *world) carryOn(pod *corev1.Pod) {
	name := pod.Spec.Containers[0].Image
	does := w.images[name]
	if does.does == nil {
		w.t.Fatalf("nobody scripted the image %s", name)
	}
	takes := does.takes
	if takes == 0 {
		takes = time.Second
	}
	deadline := pod.Status.StartTime.Add(time.Duration(*pod.Spec.ActiveDeadlineSeconds) * time.Second)
	switch done := pod.Status.StartTime.Add(takes); {
	case done.Before(deadline) && w.due(done):
		end := w.play(does, pod)
		w.terminate(pod, end.code, end.message, "")
	case w.due(deadline):
		w.terminate(pod, 137, "", "DeadlineExceeded")
	}
}

// play lets an image do its work for every claim of a pod. Unless it is scripted otherwise, an image that
// serves a batch does each as if it were alone, and says how each went.
func (w *world) play(does image, pod *corev1.Pod) ending {
	var runs []*run
	for _, uid := range claimsOf(pod) {
		runs = append(runs, w.runOf(pod, uid))
	}
	w.runs = append(w.runs, runs...)
	switch {
	case len(runs) == 1:
		return does.does(runs[0])
	case does.batch != nil:
		return does.batch(runs)
	default:
		return eachByItself(runs, does.does)
	}
}

func eachByItself(runs []*run, does func(*run) ending) ending {
	var all ending
	for _, r := range runs {
		end := does(r)
		if end.code != 0 {
			all.code = 75
		}
		all.message += r.result(end.code, end.message)
	}
	return all
}

// result is the line that a batch says of one request.
func (r *run) result(code int32, message string) string {
	return string(encode(map[string]any{"uid": r.request.UID, "code": code, "message": message})) + "\n"
}

// claimsOf are the UIDs that a pod serves, in order.
func claimsOf(pod *corev1.Pod) []string {
	requests, err := contract.DecodeRequests([]byte(pod.Annotations[jobs.AnnRequest]))
	if err != nil {
		panic(err)
	}
	var out []string
	for _, r := range requests.Items {
		out = append(out, r.UID)
	}
	return out
}

func (w *world) runOf(pod *corev1.Pod, uid string) *run {
	request, pv, err := runs.RecordedRequest(pod.Annotations, uid)
	if err != nil {
		w.t.Fatalf("the files of %s: %v", pod.Name, err)
	}
	c := pod.Spec.Containers[0]
	r := &run{w: w, pod: pod, image: c.Image, at: time.Now(), verb: contract.Verb(c.Args[0]), request: request, pv: pv, number: 1}
	for _, earlier := range w.runs {
		if earlier.verb == r.verb && earlier.request.UID == request.UID {
			r.number++
		}
	}
	return r
}

func (w *world) terminate(pod *corev1.Pod, code int32, message, reason string) {
	edit(w, kubelet, pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, reason
		if code == 0 {
			p.Status.Phase = corev1.PodSucceeded
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: contract.Container, ContainerID: "containerd://" + p.Name,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: code, Message: message, StartedAt: *cmp.Or(p.Status.StartTime, new(metav1.Time)), FinishedAt: metav1.Now(),
			}},
		}}
	})
}

// make puts the claim's volume into the storage, once.
func (r *run) make() { r.w.storage[r.request.UID] = true }

// erase takes it out. A volume that a claim is bound to is in use.
func (r *run) erase() {
	for _, claim := range every[*corev1.PersistentVolumeClaim](r.w) {
		if claim.Spec.VolumeName == r.request.PVName {
			r.w.t.Errorf("the volume of the claim %s is deleted while it is in use", claim.Name)
		}
	}
	delete(r.w.storage, r.request.UID)
}

// write completes the skeleton and creates the PV, or finds it there.
func (r *run) write(changes ...func(*corev1.PersistentVolume)) {
	pv := r.pv.DeepCopy()
	pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: "/" + pv.Name}
	pv.Finalizers = append(pv.Finalizers, protectsPVs)
	for _, change := range changes {
		change(pv)
	}
	client := r.w.server.client("image", nil)
	_, err := client.CoreV1().PersistentVolumes().Create(context.Background(), pv, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		r.w.t.Errorf("write the PV: %v", err)
	}
}

// works is an image that does its work at the first try.
func works(r *run) ending {
	switch r.verb {
	case contract.Delete:
		r.erase()
	case contract.Expand:
		r.grow()
	default:
		r.make()
		r.write()
	}
	return ending{}
}

// script plays one step after the other for each claim's provision runs, then works. Deletes work.
func script(steps ...func(*run) ending) func(*run) ending {
	return func(r *run) ending {
		if r.verb == contract.Provision && r.number <= len(steps) {
			return steps[r.number-1](r)
		}
		return works(r)
	}
}

// always plays the same for every provision.
func always(step func(*run) ending) func(*run) ending {
	return func(r *run) ending {
		if r.verb == contract.Provision {
			return step(r)
		}
		return works(r)
	}
}

// fails ends at once, with nothing made.
func fails(code int32, message string) func(*run) ending {
	return func(*run) ending { return ending{code, message} }
}

// halfway makes the volume and fails before there is a PV.
func halfway(code int32) func(*run) ending {
	return func(r *run) ending {
		r.make()
		return ending{code, "claim: halfway"}
	}
}
