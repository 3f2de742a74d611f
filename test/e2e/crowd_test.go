//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// crowdLabel is on the claims of a crowd, with the name of their class.
const crowdLabel = "e2e.example.com/crowd"

// crowd is many claims of one class in the test's namespace. They are looked at by lists, not one
// by one.
type crowd struct {
	w *world
	// class of the claims, and the namespace of their Jobs.
	class, jobs string
	uids        map[string]bool
}

// crowd makes so many claims of a class whose Jobs are in a namespace. They are deleted with the
// test, and their PVs too if those are retained.
func (w *world) crowd(class, jobs string, many int) *crowd {
	w.t.Helper()
	c := &crowd{w: w, class: class, jobs: jobs, uids: map[string]bool{}}
	w.remove(c.removeAll)
	var mu sync.Mutex
	w.inParallel(many, func(i int) error {
		claim, err := kube.CoreV1().PersistentVolumeClaims(w.ns).Create(w.ctx(), &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				GenerateName: fmt.Sprintf("%s-%04d-", class, i), Labels: map[string]string{crowdLabel: class},
			},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class,
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				},
			},
		}, metav1.CreateOptions{})
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			c.uids[string(claim.UID)] = true
		}
		return err
	})
	return c
}

// inParallel calls do for each number below many, ten at a time.
func (w *world) inParallel(many int, do func(int) error) {
	w.t.Helper()
	numbers, failed := make(chan int), make(chan error, many)
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			for i := range numbers {
				failed <- do(i)
			}
		})
	}
	for i := range many {
		numbers <- i
	}
	close(numbers)
	workers.Wait()
	close(failed)
	for err := range failed {
		w.must(err, "one of many requests")
	}
}

// claims lists those that exist.
func (c *crowd) claims(ctx context.Context) ([]corev1.PersistentVolumeClaim, error) {
	list, err := kube.CoreV1().PersistentVolumeClaims(c.w.ns).List(ctx, all)
	if err != nil {
		return nil, err
	}
	var out []corev1.PersistentVolumeClaim
	for _, claim := range list.Items {
		if c.uids[string(claim.UID)] {
			out = append(out, claim)
		}
	}
	return out, nil
}

// bound reports an error unless all of them are bound.
func (c *crowd) bound(ctx context.Context) error {
	claims, err := c.claims(ctx)
	if err != nil {
		return err
	}
	bound := 0
	for _, claim := range claims {
		if claim.Status.Phase == corev1.ClaimBound {
			bound++
		}
	}
	if bound < len(c.uids) {
		return fmt.Errorf("%d of %d claims are bound", bound, len(c.uids))
	}
	return nil
}

// released reports an error while one of their Jobs is held as a record.
func (c *crowd) released(ctx context.Context) error {
	held, err := c.heldJobs(ctx)
	if len(held) > 0 {
		err = errors.Join(err, fmt.Errorf("%d Jobs are records", len(held)))
	}
	return err
}

func (c *crowd) heldJobs(ctx context.Context) ([]batchv1.Job, error) {
	list, err := kube.BatchV1().Jobs(c.jobs).List(ctx, all)
	if err != nil {
		return nil, err
	}
	var held []batchv1.Job
	for _, job := range list.Items {
		ours := slices.ContainsFunc(claimsOf(job), func(uid string) bool { return c.uids[uid] })
		if ours && !released(job) {
			held = append(held, job)
		}
	}
	return held, nil
}

// pvs lists their PVs.
func (c *crowd) pvs(ctx context.Context) ([]corev1.PersistentVolume, error) {
	list, err := kube.CoreV1().PersistentVolumes().List(ctx, all)
	if err != nil {
		return nil, err
	}
	var out []corev1.PersistentVolume
	for _, pv := range list.Items {
		if pv.Spec.StorageClassName == c.class && pv.Spec.ClaimRef != nil && c.uids[string(pv.Spec.ClaimRef.UID)] {
			out = append(out, pv)
		}
	}
	return out, nil
}

// gone reports an error unless no claim, no PV and no record is left.
func (c *crowd) gone(ctx context.Context) error {
	if err := c.claimsGone(ctx); err != nil {
		return err
	}
	pvs, err := c.pvs(ctx)
	if len(pvs) > 0 {
		err = errors.Join(err, fmt.Errorf("%d PVs are left", len(pvs)))
	}
	return errors.Join(err, c.released(ctx))
}

// claimsGone asks for one claim at most: lists of thousands, again and again, would keep the API
// server busy.
func (c *crowd) claimsGone(ctx context.Context) error {
	one := labelled(crowdLabel + "=" + c.class)
	one.Limit = 1
	list, err := kube.CoreV1().PersistentVolumeClaims(c.w.ns).List(ctx, one)
	if err == nil && len(list.Items) > 0 {
		err = fmt.Errorf("the claim %s is left, and there are more: %t", list.Items[0].Name, list.Continue != "")
	}
	return err
}

// deleteAll deletes all claims.
func (c *crowd) deleteAll() {
	c.w.t.Helper()
	claims, err := c.claims(c.w.ctx())
	c.w.must(err, "list the claims")
	c.w.inParallel(len(claims), func(i int) error {
		return known(kube.CoreV1().PersistentVolumeClaims(c.w.ns).Delete(c.w.ctx(), claims[i].Name, metav1.DeleteOptions{}))
	})
}

// removeAll ends the crowd. PVs that are retained are deleted, since no storage is behind them.
func (c *crowd) removeAll() {
	c.deleteAll()
	c.w.eventually(4*time.Minute, "nothing to be left of the crowd of the class "+c.class, func(ctx context.Context) error {
		pvs, err := c.pvs(ctx)
		for _, pv := range pvs {
			kept := pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain && pv.Status.Phase == corev1.VolumeReleased
			if kept && pv.DeletionTimestamp == nil {
				if err := kube.CoreV1().PersistentVolumes().Delete(ctx, pv.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
					return err
				}
			}
		}
		return errors.Join(err, c.gone(ctx))
	})
}
