//go:build e2e

package e2e

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
)

// confirmGate is what every provisioning pod is created with.
const confirmGate = "flex-provisioner.io/confirm"

// provisioningPod is a pod as the dispatcher launches it for a class on a node's directories.
func provisioningPod(change ...func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"flex-provisioner.io/verb": "provision"}},
		Spec:       shell("attack", "", "true", nil).Spec,
	}
	mountsDirectories(&template)
	harden(&template.Spec)
	template.Spec.ServiceAccountName = "directory-provisioner"
	template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: confirmGate}}
	for _, c := range change {
		c(&template)
	}
	return template
}

// harden gives a pod what Pod Security "restricted" and the policy of flex-provisioner-node ask
// for.
func harden(spec *corev1.PodSpec) {
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true)}
	}
	spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	container := &spec.Containers[0]
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	}
	container.SecurityContext.AllowPrivilegeEscalation = new(false)
}

func createPod(change ...func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	return createPodIn(nodeNamespace, change...)
}

func createPodIn(namespace string, change ...func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	template := provisioningPod(change...)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = "attack"
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

func createJob(change ...func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	return createJobIn(nodeNamespace, change...)
}

func createJobIn(namespace string, change ...func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "attack"}, Spec: batchv1.JobSpec{Template: provisioningPod(change...)}}
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// Whoever creates a Job or a pod in the namespace that may mount a node's directories, with a
// stolen token of the dispatcher too, gets no more of the node than the configs that are shipped.
func TestPodOfANodesDirectoriesGetsNoMoreOfItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "escape")
	w.run(nodePodAttacks(), true)
}

// nodePodAttacks returns the attacks by Jobs and pods on the nodes. They change nothing: every
// policy judges a dry run as well.
func nodePodAttacks() []attack {
	privileged := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	}
	bare := func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].SecurityContext = nil }
	unconfined := func(p *corev1.PodTemplateSpec) { p.Spec.SecurityContext.SeccompProfile = nil }
	admin := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	}
	mounts := func(path string) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) { p.Spec.Volumes[0].HostPath.Path = path }
	}
	processes := func(p *corev1.PodTemplateSpec) { p.Spec.HostPID = true }
	network := func(p *corev1.PodTemplateSpec) { p.Spec.HostNetwork = true }
	kernel := func(p *corev1.PodTemplateSpec) {
		p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "65536"}}
	}
	user := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{User: "system_u"}
	}
	metadata := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254", Port: intstr.FromInt32(80)},
		}}
	}
	const path = "may mount no hostPath but"
	return []attack{
		{"a privileged Job", theDispatcher, createJob(privileged), "may not be privileged", passes},
		{"its pod", jobController, createPod(privileged), "may not be privileged", passes},
		{"a container without a security context", theDispatcher, createJob(bare), "must set allowPrivilegeEscalation to false", passes},
		{"no seccomp profile", theDispatcher, createJob(unconfined), "seccomp profile", passes},
		{"CAP_NET_ADMIN", theDispatcher, createJob(admin), "may add only DAC_OVERRIDE", passes},
		{"hostPath /", theDispatcher, createJob(mounts("/")), path, passes},
		{"hostPath below a link", theDispatcher, createJob(mounts(volumesFolder + "/link/etc")), path, passes},
		{"its pod", jobController, createPod(mounts(volumesFolder + "/link")), path, passes},
		{"the node's processes", theDispatcher, createJob(processes), "hostPID", passes},
		{"the node's network", theDispatcher, createJob(network), "hostNetwork", passes},
		{"a sysctl that is not safe", theDispatcher, createJob(kernel), "no other sysctl", passes},
		{"another SELinux user", theDispatcher, createJob(user), "no SELinux user", passes},
		{"a probe of another host, from the node's network", theDispatcher, createJob(metadata), "may name no host", passes},
		{"what the shipped configs launch", theDispatcher, createJob(), "", passes},
		{"its pod", jobController, createPod(), "", passes},
	}
}

// A provisioning pod that was created without its gate, as where a webhook strips it, would run
// unconfirmed. It is refused.
func TestProvisioningPodWithoutItsGateIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ungated")
	w.run(gateAttacks(), true)
}

// gateAttacks returns the attempts to run without a gate. They change nothing.
func gateAttacks() []attack {
	const refusal = "must be created with the scheduling gate " + confirmGate
	ungated := func(p *corev1.PodTemplateSpec) { p.Spec.SchedulingGates = nil }
	other := func(p *corev1.PodTemplateSpec) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	}
	unlabelled := func(p *corev1.PodTemplateSpec) { p.Labels = nil }
	anonymous := func(p *corev1.PodTemplateSpec) { p.Spec.ServiceAccountName = "default" }
	return []attack{
		{"a pod without a gate", jobController, createPod(ungated), refusal, passes},
		{"with another gate", jobController, createPod(other), refusal, passes},
		{"without its label", jobController, createPod(ungated, unlabelled), refusal, passes},
		{"without an account of its own", jobController, createPod(ungated, anonymous), refusal, passes},
		{"with its gate", jobController, createPod(), "", passes},
		{"a pod that provisions nothing", jobController, createPod(ungated, unlabelled, anonymous), "", passes},
	}
}
