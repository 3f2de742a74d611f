package runs

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// TokenPath is where a container finds the token of its pod (DefaultAPITokenMountPath in
// Kubernetes' plugin/pkg/admission/serviceaccount).
const TokenPath = "/var/run/secrets/kubernetes.io/serviceaccount" //nolint:gosec // G101: a path

// WhyNoToken returns which field took the token for the API server from a run's container, or
// nothing if it had one or no pod is left to tell.
func WhyNoToken(job *batchv1.Job, pods []*corev1.Pod) string {
	const automount = "has automountServiceAccountToken: false"
	pod := NewestPod(pods)
	switch {
	case pod == nil || HasToken(pod.Spec):
		return ""
	case !ptr.Deref(job.Spec.Template.Spec.AutomountServiceAccountToken, true):
		return "the Job " + automount
	case !ptr.Deref(pod.Spec.AutomountServiceAccountToken, true):
		return "the pod " + automount
	default:
		return "its container mounts nothing at " + TokenPath
	}
}

// HasToken reports whether the container "provisioner" of a pod mounts a token where it looks for
// it: Kubernetes' own, or that of a template.
func HasToken(spec corev1.PodSpec) bool {
	return slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
		return c.Name == contract.Container &&
			slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == TokenPath })
	})
}
