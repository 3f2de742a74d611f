//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// queueName is the label by which Kueue finds its Jobs.
const queueName = "kueue.x-k8s.io/queue-name"

// All that a template may set reaches the pod that the API server accepts and the kubelet runs: the
// container that provisions sees what the init container wrote. The namespace enforces
// "restricted".
func TestPodTemplateReachesThePod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "template")
	w.restricted()
	w.priority()
	class, _ := w.service(scripted(deletes+`read -r filer </seed/filer; [ "$filer" = seeded ]`+"\n"+offer, nil, w.fullTemplate))
	claim := w.claim(class, "data")
	w.bound(claim)

	job := w.onlyJob(claim, "provision")
	pod := w.onlyPod(job)
	for _, labels := range []map[string]string{job.Labels, pod.Labels} {
		equal(t, "the queue's name", labels[queueName], "storage")
		equal(t, "the claim's UID", labels["flex-provisioner.io/claim-uid"], string(claim.UID))
	}
	equal(t, "the note", pod.Annotations["e2e.example.com/note"], "kept")
	spec := pod.Spec
	equal(t, "the toleration's key", spec.Tolerations[0].Key, "storage")
	equal(t, "the affinity's weight", spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight, 7)
	equal(t, "the priority", *spec.Priority, 1234)
	equal(t, "the pull secret", spec.ImagePullSecrets[0].Name, "registry")
	container := spec.Containers[0]
	equal(t, "the memory limit", container.Resources.Limits.Memory().String(), "128Mi")
	equal(t, "the CPU request of the baseline", container.Resources.Requests.Cpu().String(), "0")
	equal(t, "the image", container.Image, bashImage)
}

// fullTemplate sets what a template may set, with a container that works before the provisioner.
func (w *world) fullTemplate(p *corev1.PodTemplateSpec) {
	p.Labels = map[string]string{queueName: "storage"}
	p.Annotations = map[string]string{"e2e.example.com/note": "kept"}
	seed := []corev1.VolumeMount{{Name: "seed", MountPath: "/seed"}}
	container := &p.Spec.Containers[0]
	container.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")}
	container.VolumeMounts = seed
	p.Spec.InitContainers = []corev1.Container{{
		Name: "seed", Image: bashImage, Command: []string{"/bin/sh", "-c", "echo seeded >/seed/filer"}, VolumeMounts: seed,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}}
	p.Spec.Volumes = []corev1.Volume{{Name: "seed", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	p.Spec.Tolerations = []corev1.Toleration{{Key: "storage", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	p.Spec.PriorityClassName = w.ns
	p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 7,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node2"}},
			}},
		}},
	}}
}

// priority makes a priority class named after the test's namespace.
func (w *world) priority() {
	w.t.Helper()
	classes := kube.SchedulingV1().PriorityClasses()
	_, err := classes.Create(w.ctx(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Value: 1234}, metav1.CreateOptions{})
	w.must(err, "create the priority class")
	w.remove(func() { w.gone(classes.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "priority class "+w.ns) })
}

// restricted checks that the namespace of configs refuses an ordinary pod: else it would prove
// nothing that a Job's pod is accepted.
func (w *world) restricted() {
	w.t.Helper()
	_, err := kube.CoreV1().Pods(ownNamespace).Create(w.ctx(), shell(w.ns, "", "true", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
		w.t.Errorf("an ordinary pod in the namespace of configs: %v", err)
	}
}

// A template that weakens the pod's security is refused before any Job is created, and the event
// names each part.
func TestPodTemplateThatWeakensSecurityIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "loose")
	class, cm := w.service(scripted(offer, nil, func(p *corev1.PodTemplateSpec) {
		p.Spec.HostNetwork = true
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(false), RunAsUser: new(int64(0))}
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true), AllowPrivilegeEscalation: new(true)}
		p.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	}))
	claim := w.claim(class, "data")
	for _, about := range []metav1.Object{claim, cm} {
		w.event(about, "InvalidConfig", "data[pod-template]", "hostNetwork", "privileged", "hostPath", "runAsNonRoot", "--allow="+ownNamespace)
	}
	w.noJob(claim, 3*time.Second)
}
