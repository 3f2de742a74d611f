//go:build e2e

package e2e

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dump prints what is needed to understand a failure, without any secret. Its own errors are
// printed as well.
func (w *world) dump() {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say("---- how things stand in %s", w.ns)
	for _, claim := range w.claims {
		w.dumpClaim(say, claim)
	}
	w.dumpEvents(say)
	w.dumpDispatchers(say)
	w.t.Log(redact(w.ctx(), out.String()))
}

type printer func(format string, args ...any)

func (w *world) dumpClaim(say printer, claim *corev1.PersistentVolumeClaim) {
	now, err := lookClaim(w.ctx(), claim)
	if err != nil {
		say("claim %s %s: %v", claim.Name, claim.UID, err)
	} else {
		say("claim %s %s: %s volume=%q deleted=%v %v", now.Name, now.UID, now.Status.Phase, now.Spec.VolumeName, now.DeletionTimestamp, now.Annotations)
	}
	if pv, err := kube.CoreV1().PersistentVolumes().Get(w.ctx(), "pvc-"+string(claim.UID), metav1.GetOptions{}); err == nil {
		say("  PV %s: %s deleted=%v finalizers=%v", pv.Name, pv.Status.Phase, pv.DeletionTimestamp, pv.Finalizers)
	}
	volumes, err := volumesOf(w.ctx(), string(claim.UID))
	say("  Cinder: %v %v", volumes, err)
	jobs, err := jobsOf(w.ctx(), string(claim.UID), "")
	if err != nil {
		say("  %v", err)
	}
	for _, job := range jobs {
		say("  Job %s/%s: ended=%v finalizers=%v deleted=%v record=%s", job.Namespace, job.Name, ended(job),
			job.Finalizers, job.DeletionTimestamp, job.Annotations["flex-provisioner.io/record"])
		pods, _ := podsOf(w.ctx(), job)
		for i := range pods {
			w.dumpPod(say, &pods[i])
		}
		about, _ := events(w.ctx(), job.Namespace, job.UID)
		for _, e := range about {
			say("    %s %s: %s", e.Type, e.Reason, e.Note)
		}
	}
}

func (w *world) dumpPod(say printer, pod *corev1.Pod) {
	say("    pod %s on %s: %s %s %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		say("      %s: %v", s.Name, s.State)
		log, err := kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
			Container: s.Name, TailLines: new(int64(30)),
		}).DoRaw(w.ctx())
		if err != nil {
			say("      no log: %v", err)
			continue
		}
		for line := range strings.Lines(string(log)) {
			say("      | %s", strings.TrimRight(line, "\n"))
		}
	}
}

func (w *world) dumpEvents(say printer) {
	list, err := kube.EventsV1().Events(w.ns).List(w.ctx(), all)
	if err != nil {
		say("events: %v", err)
		return
	}
	for _, e := range list.Items {
		say("event %s %s %s/%s: %s: %s", e.CreationTimestamp.Format("15:04:05"), e.Type, e.Regarding.Kind, e.Regarding.Name, e.Reason, e.Note)
	}
	pods, _ := kube.CoreV1().Pods(w.ns).List(w.ctx(), all)
	for i := range pods.Items {
		w.dumpPod(say, &pods.Items[i])
	}
}

func (w *world) dumpDispatchers(say printer) {
	pods, err := replicas(w.ctx())
	if err != nil {
		say("%v", err)
		return
	}
	for i := range pods {
		w.dumpPod(say, &pods[i])
	}
}
