package conform

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod returns a pod that mounts a claim at /data, as Pod Security "restricted" wants it.
func (t *trial) pod(c *claim, name string, container corev1.Container) *corev1.Pod {
	container.Name = "conform"
	container.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: t.labels()},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(1)),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), FSGroup: new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{container},
			Volumes:    []corev1.Volume{volumeOf("data", c.Name)},
		},
	}
}

// createConsumer creates a pod for which the scheduler selects the node of a claim. It is deleted
// when the claim is bound: its container need not start.
func (t *trial) createConsumer(ctx context.Context, c *claim) error {
	c.pod = c.Name
	pod := t.pod(c, c.pod, corev1.Container{Image: t.PodImage, Args: []string{"--version"}})
	if source := c.Spec.DataSource; source != nil { // a clone is made where its source is
		pod.Spec.Volumes = append(pod.Spec.Volumes, volumeOf("source", source.Name))
	}
	return t.createPod(ctx, pod)
}

func volumeOf(name, claim string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

// createPod creates a pod. A new namespace has no ServiceAccount for a moment, and refuses it.
func (t *trial) createPod(ctx context.Context, pod *corev1.Pod) error {
	var refused error
	err := t.until(ctx, 30*time.Second, "the API server to accept a pod", func(ctx context.Context) (bool, error) {
		_, refused = t.Client.CoreV1().Pods(t.namespace.Name).Create(ctx, pod, metav1.CreateOptions{})
		return refused == nil, nil
	})
	if err != nil && refused != nil {
		return fmt.Errorf("create the pod %s: %w", pod.Name, refused)
	}
	return err
}

// deleteConsumer deletes the pod of a claim, and waits until it no longer exists: it would keep the
// claim.
func (t *trial) deleteConsumer(ctx context.Context, c *claim) error {
	if c.pod == "" {
		return nil
	}
	err := t.deletePod(ctx, c.pod)
	if err == nil {
		c.pod = ""
	}
	return err
}

func (t *trial) deletePod(ctx context.Context, name string) error {
	pods := t.Client.CoreV1().Pods(t.namespace.Name)
	err := t.deleteOwn(pods.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))}), "the pod "+name)
	if err != nil {
		return err
	}
	return t.until(ctx, 2*time.Minute, "the pod "+name+" to end", func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
