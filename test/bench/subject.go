package main

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/process"
)

// Annotations of claims that Kubernetes writes. The benchmark writes the node itself on the claims
// of a provisioner that needs one.
const (
	annProvisioner  = "volume.kubernetes.io/storage-provisioner"
	annSelectedNode = "volume.kubernetes.io/selected-node"
)

// className is the class of the claims.
const className = "bench"

// subject is what is measured.
type subject struct {
	// create asks for what the row is about: a claim, or a Job.
	create func(ctx context.Context, name string) error
	// remove deletes the claim, and what nothing else deletes.
	remove   func(ctx context.Context, name string) error
	programs []*process.Program
}

// end ends the programs, and waits until they have ended.
func (s *subject) end(stop func()) {
	stop()
	for _, p := range s.programs {
		p.Wait()
	}
}

// newSubject starts what a row measures.
func newSubject(ctx context.Context, s settings, c *cluster) (*subject, error) {
	start := map[plan.Kind]func(context.Context, settings, *cluster) (*subject, error){
		plan.Floor: startFloor, plan.Jobs: startJobs, plan.Ceiling: startCeiling, plan.Ours: startOurs,
		plan.CSI: startCSI, plan.Library: startLibrary, plan.LocalPath: startLocalPath,
	}[s.cell.Row.Kind]
	if start == nil {
		return nil, errors.New("it has no program")
	}
	return start(ctx, s, c)
}

// makeClass makes the class that a provisioner serves.
func (c *cluster) makeClass(ctx context.Context, provisioner string, binding storagev1.VolumeBindingMode) error {
	_, err := c.client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: className}, Provisioner: provisioner,
		ReclaimPolicy: new(corev1.PersistentVolumeReclaimDelete), VolumeBindingMode: &binding,
	}, metav1.CreateOptions{})
	return err
}

// claimOf returns a claim of a class.
func claimOf(name, class string, annotations map[string]string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: benchNamespace, Annotations: annotations},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// claims returns what creates claims of a class with these annotations.
func (c *cluster) claims(class string, annotations map[string]string) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		_, err := c.client.CoreV1().PersistentVolumeClaims(benchNamespace).Create(ctx, claimOf(name, class, annotations), metav1.CreateOptions{})
		return err
	}
}

// deleteClaim deletes a claim.
func (c *cluster) deleteClaim(ctx context.Context, name string) error {
	return c.client.CoreV1().PersistentVolumeClaims(benchNamespace).Delete(ctx, name, metav1.DeleteOptions{})
}
