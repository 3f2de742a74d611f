package conform

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// firstVolume returns the volume that several promises look at, and its PersistentVolume.
func (t *trial) firstVolume(ctx context.Context) (*claim, *corev1.PersistentVolume, error) {
	if len(t.early) > 0 {
		first := t.early[0]
		name := contract.PVName(string(first.UID))
		pv, err := t.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		return first, pv, err
	}
	return t.provisionedEarly(ctx)
}

// provisionedEarly returns a new claim that is bound, and that delete deletes.
func (t *trial) provisionedEarly(
	ctx context.Context, change ...func(*corev1.PersistentVolumeClaim),
) (*claim, *corev1.PersistentVolume, error) {
	c, pv, err := t.provisioned(ctx, change...)
	if err == nil {
		t.early = append(t.early, c)
	}
	return c, pv, err
}

func testProvision(ctx context.Context, t *trial) error {
	c, pv, err := t.firstVolume(ctx)
	if err != nil {
		return err
	}
	if why := pvs.Unproven(pv, string(c.UID)); why != "" {
		return broken("%s", why)
	}
	return nil
}

func testPV(ctx context.Context, t *trial) error {
	c, pv, err := t.firstVolume(ctx)
	if err != nil {
		return err
	}
	if why := whyOtherPV(pv, c.PersistentVolumeClaim, t.Class); why != "" {
		return broken("%s", why)
	}
	if err := t.whyShared(ctx, pv); err != nil || t.InMemory == nil {
		return err
	}
	return t.mustServeOdd(ctx)
}

// mustServeOdd tests a name and a size that scripts get wrong: the longest kind of name, with dots, and
// a size that is no multiple of anything. A storage may make the volume larger.
func (t *trial) mustServeOdd(ctx context.Context) error {
	odd := func(c *corev1.PersistentVolumeClaim) {
		c.Name = strings.Repeat("0.a-long-name.", 17) + "0"
		c.Spec.Resources.Requests[corev1.ResourceStorage] = *resource.NewQuantity(t.Size.Value()+1, resource.BinarySI)
	}
	c, pv, err := t.provisionedEarly(ctx, odd)
	if err != nil {
		return err
	}
	if why := whyOtherPV(pv, c.PersistentVolumeClaim, t.Class); why != "" {
		return broken("for a claim of %s: %s", c.Spec.Resources.Requests.Storage(), why)
	}
	return t.mustServeAnother(ctx, c, odd)
}

// mustServeAnother tests a claim of the same name, while the volume of the first one is retained: a
// script that names volumes after claims gives it the data of the first.
func (t *trial) mustServeAnother(
	ctx context.Context, c *claim, same func(*corev1.PersistentVolumeClaim),
) error {
	name := contract.PVName(string(c.UID))
	c.restore = t.reclaiming(name, corev1.PersistentVolumeReclaimDelete)
	if err := t.reclaiming(name, corev1.PersistentVolumeReclaimRetain)(ctx); err != nil {
		return err
	}
	if err := t.release(ctx, c); err != nil {
		return err
	}
	claims := t.Client.CoreV1().PersistentVolumeClaims(c.Namespace)
	what := "the claim " + c.Name + " to be deleted"
	err := t.until(ctx, t.limit(), what, func(ctx context.Context) (bool, error) {
		_, err := claims.Get(ctx, c.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return err
	}
	_, pv, err := t.provisionedEarly(ctx, same)
	if err != nil {
		return err
	}
	return t.whyShared(ctx, pv)
}

// reclaiming returns what gives a PersistentVolume a reclaim policy.
func (r *Run) reclaiming(
	pv string, policy corev1.PersistentVolumeReclaimPolicy,
) func(context.Context) error {
	return r.changing(pv, func(ctx context.Context, now *corev1.PersistentVolume) error {
		now.Spec.PersistentVolumeReclaimPolicy = policy
		_, err := r.Client.CoreV1().PersistentVolumes().Update(ctx, now, metav1.UpdateOptions{})
		return err
	})
}

func testList(ctx context.Context, t *trial) error {
	c, _, err := t.firstVolume(ctx)
	if err != nil {
		return err
	}
	all, err := t.List(ctx)
	if err != nil {
		return broken("%s", err)
	}
	own := 0
	for _, v := range all {
		if v.UID != string(c.UID) {
			continue
		}
		own++
		if why := whyOtherLine(contract.Listed(v), c.PersistentVolumeClaim, t.ClusterUID); why != "" {
			return broken("%s", why)
		}
	}
	if own != 1 {
		return broken("%d lines have the UID of the claim, and it has one volume", own)
	}
	return nil
}

func testDelete(ctx context.Context, t *trial) error {
	if _, _, err := t.firstVolume(ctx); err != nil {
		return err
	}
	for len(t.early) > 0 {
		if err := t.remove(ctx, t.early[0]); err != nil {
			return err
		}
		t.early = t.early[1:]
	}
	return nil
}

func testSecret(ctx context.Context, t *trial) error {
	c, pv, err := t.provisioned(ctx)
	if err != nil {
		return err
	}
	labelled, err := t.Client.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelClaimUID + "=" + string(c.UID)})
	if err != nil {
		return fmt.Errorf("list the Secrets of the volume: %w", err)
	}
	found := map[types.NamespacedName]bool{}
	for i := range labelled.Items {
		secret := &labelled.Items[i]
		found[types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}] = true
		t.keepSecrets(secret.Name, secret.Data)
	}
	if why := whyOtherSecrets(pv, found); why != "" {
		return broken("%s", why)
	}
	if len(found) == 0 {
		return notClaimed("its volumes have no Secret")
	}
	return t.remove(ctx, c)
}

// testProvisionAgain runs the image twice: the first run may not write its PersistentVolume.
func testProvisionAgain(ctx context.Context, t *trial) (err error) {
	defer func() { err = errors.Join(err, t.openGate(ctx)) }()
	c, first, err := t.refused(ctx)
	if err != nil {
		return err
	}
	if first.outcome.Verdict == contract.Done && t.Config.Writer != config.DispatcherWrites {
		return brokenBy(first, "its PersistentVolume was refused, and it ended with exit code 0")
	}
	if err := t.openGate(ctx); err != nil {
		return err
	}
	before, err := t.runsOf(ctx, c.UID, contract.Provision)
	if err != nil {
		return err
	}
	for _, run := range before {
		c.disturbed[run.job] = "a run that could not write its PersistentVolume"
	}
	if _, err := t.bound(ctx, c); err != nil {
		return err
	}
	return t.mustBeOne(ctx, c)
}

// mustBeOne checks that the storage has one volume of a claim, if it can be listed.
func (t *trial) mustBeOne(ctx context.Context, c *claim) error {
	volumes, err := t.volumesOf(ctx, c.UID)
	if err == nil && len(volumes) > 1 {
		err = broken("the storage lists %d volumes of the claim", len(volumes))
	}
	return err
}

// testAbandoned deletes a claim whose run has created a volume and could not write its
// PersistentVolume: only an undo can delete that.
func testAbandoned(ctx context.Context, t *trial) (err error) {
	defer func() { err = errors.Join(err, t.openGate(ctx)) }()
	c, _, err := t.refused(ctx)
	if err != nil {
		return err
	}
	if err := t.remove(ctx, c); err != nil {
		return err
	}
	undos, err := t.runsOf(ctx, c.UID, contract.Delete)
	if err == nil && len(undos) == 0 {
		err = notTested("no undo was run")
	}
	return err
}

func testProvisionKilled(ctx context.Context, t *trial) error {
	return t.kill(ctx, killing{
		verb:  contract.Provision,
		begin: func(context.Context, *claim) error { return nil },
		end: func(ctx context.Context, c *claim) error {
			if _, err := t.bound(ctx, c); err != nil {
				return err
			}
			return t.mustBeOne(ctx, c)
		},
	})
}

func testDeleteKilled(ctx context.Context, t *trial) error {
	return t.kill(ctx, killing{verb: contract.Delete, begin: t.release, end: t.removed})
}

func testExpandKilled(ctx context.Context, t *trial) error {
	return t.kill(ctx, killing{verb: contract.Expand, begin: t.growTwice, end: t.grown})
}

// twice returns the size to which volumes grow.
func (r *Run) twice() *resource.Quantity {
	return resource.NewQuantity(r.Size.Value()*2, resource.BinarySI)
}

// growTwice requests twice the size for a claim.
func (t *trial) growTwice(ctx context.Context, c *claim) error {
	patch := fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":%q}}}}`, t.twice())
	_, err := t.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		err = fmt.Errorf("request a larger volume: %w", err)
	}
	return err
}

// grown waits until the PersistentVolume of a claim has twice its size, and checks it in the list.
func (t *trial) grown(ctx context.Context, c *claim) error {
	size := t.twice()
	err := t.await(ctx, c, contract.Expand, "the volume to have "+size.String(), func(ctx context.Context) (bool, error) {
		pv, err := t.Client.CoreV1().PersistentVolumes().Get(ctx, contract.PVName(string(c.UID)), metav1.GetOptions{})
		return err == nil && pv.Spec.Capacity.Storage().Cmp(*size) >= 0, err
	})
	if err != nil {
		return err
	}
	volumes, err := t.volumesOf(ctx, c.UID)
	if err == nil && len(volumes) > 0 && volumes[0].Size < size.Value() {
		err = broken("the run ended with exit code 0, and the storage lists %d bytes of the %d", volumes[0].Size, size.Value())
	}
	return err
}

func testExpand(ctx context.Context, t *trial) error {
	c, _, err := t.provisioned(ctx)
	if err != nil {
		return err
	}
	if err := t.growTwice(ctx, c); err != nil {
		return err
	}
	return t.grown(ctx, c)
}
