package main

import (
	"context"
	"maps"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/play"
)

// scriptImage is the image of the scripts, as the lab's nodes have it.
const scriptImage = "localhost/flex-shell:dev"

// ceilingProvisioner is the provisioner that sends one request a claim.
const ceilingProvisioner = "bench.example/ceiling"

// pvOf returns the PV of a claim, bound to it from the start.
func pvOf(claim *corev1.PersistentVolumeClaim, provisioner string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: maps.Clone(claim.Spec.Resources.Requests), AccessModes: claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
		},
	}
	pv.Spec.NFS = play.Source(name)
	if claim.Spec.StorageClassName != nil {
		pv.Spec.StorageClassName = *claim.Spec.StorageClassName
	}
	return pv
}

// startFloor makes a PV right after each claim, and deletes it with the claim. The claims have no
// class, so that nothing is provisioned for them.
func startFloor(ctx context.Context, _ settings, c *cluster) (*subject, error) {
	client, err := c.as(ctx, "floor")
	if err != nil {
		return nil, err
	}
	floor := &subject{create: func(ctx context.Context, name string) error {
		claim, err := c.client.CoreV1().PersistentVolumeClaims(benchNamespace).Create(ctx, claimOf(name, "", nil), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		_, err = client.CoreV1().PersistentVolumes().Create(ctx, pvOf(claim, "bench.example/floor"), metav1.CreateOptions{})
		return err
	}}
	floor.remove = func(ctx context.Context, name string) error {
		claim, err := c.client.CoreV1().PersistentVolumeClaims(benchNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := c.deleteClaim(ctx, name); err != nil {
			return err
		}
		return client.CoreV1().PersistentVolumes().Delete(ctx, claim.Spec.VolumeName, metav1.DeleteOptions{})
	}
	return floor, nil
}

// startJobs makes Jobs and no claims. Those of a real node start bash, in the image of the scripts.
func startJobs(_ context.Context, s settings, c *cluster) (*subject, error) {
	container := corev1.Container{Name: "job", Image: "localhost/bench:v1"}
	if s.cell.Column == plan.One {
		container.Image, container.Command = scriptImage, []string{"bash", "-c", "exit 0"}
	}
	return &subject{create: func(ctx context.Context, name string) error {
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{container},
			}}},
		}
		_, err := c.client.BatchV1().Jobs(benchNamespace).Create(ctx, job, metav1.CreateOptions{})
		return err
	}}, nil
}

// ceiling makes the PV of a claim as soon as the claim carries the PV controller's annotation, with
// one request.
type ceiling struct {
	client kubernetes.Interface
	work   chan *corev1.PersistentVolumeClaim
	mu     sync.Mutex
	served map[types.UID]bool
}

// mostWaiting claims: more than any cell has.
const mostWaiting = 10_000

func startCeiling(ctx context.Context, s settings, c *cluster) (*subject, error) {
	if err := c.makeClass(ctx, ceilingProvisioner, storagev1.VolumeBindingImmediate); err != nil {
		return nil, err
	}
	client, err := c.as(ctx, "ceiling")
	if err != nil {
		return nil, err
	}
	one := &ceiling{client: client, work: make(chan *corev1.PersistentVolumeClaim, mostWaiting), served: map[types.UID]bool{}}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(benchNamespace))
	if _, err := factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(onChange(one.see)); err != nil {
		return nil, err
	}
	factory.StartWithContext(ctx)
	factory.WaitForCacheSyncWithContext(ctx)
	for range creators {
		go one.serve(ctx)
	}
	return &subject{create: c.claims(className, nil), remove: c.deleteClaim}, nil
}

func (o *ceiling) see(obj any) {
	claim, is := obj.(*corev1.PersistentVolumeClaim)
	if !is || claim.Annotations[annProvisioner] != ceilingProvisioner {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.served[claim.UID] {
		o.served[claim.UID] = true
		o.work <- claim
	}
}

func (o *ceiling) serve(ctx context.Context) {
	for {
		select {
		case claim := <-o.work:
			_, err := o.client.CoreV1().PersistentVolumes().Create(ctx, pvOf(claim, ceilingProvisioner), metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
				klog.ErrorS(err, "Failed to create a PV", "claim", claim.Name)
			}
		case <-ctx.Done():
			return
		}
	}
}
