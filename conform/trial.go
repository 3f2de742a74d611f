package conform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// trial is the test of one promise. Its claims are removed at its end.
type trial struct {
	*Run

	name   string
	claims []*claim
	// note says what was found.
	note string
}

// claim is a claim of a trial.
type claim struct {
	*corev1.PersistentVolumeClaim

	// pod is the name of a pod for which the scheduler selects the claim's node, if there is one.
	pod string
	// disturbed says what this run has done to a Job, by the Job's name: the run after it has to do.
	disturbed map[string]string
	// restore takes back what a test has changed of its PersistentVolume, so that its volume is
	// deleted. It may be nil.
	restore func(context.Context) error
	// released is set once it was deleted. Another claim may have its name then.
	released bool
	// removed is set once nothing is left of it. untested is set if its removal is the matter of another
	// promise.
	removed, untested bool
}

// lookEvery is how often something is looked for.
const lookEvery = 200 * time.Millisecond

// until waits until look says so. It ends with an error of look that is a verdict, or that says that
// something is forbidden; other errors are those of a moment.
func (r *Run) until(ctx context.Context, limit time.Duration, what string, look func(context.Context) (bool, error)) error {
	end, last := r.Clock.Now().Add(limit), error(nil)
	for {
		found, err := look(ctx)
		switch {
		case found || isVerdict(err) || apierrors.IsForbidden(err):
			return err
		case !r.Clock.Now().Before(end):
			return errors.Join(fmt.Errorf("waited %s for %s", limit, what), err, last)
		}
		last = err
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.Clock.After(lookEvery):
		}
	}
}

// await waits for what the runs of a verb are to do for a claim, though not for an image that fails again and
// again.
func (r *Run) await(ctx context.Context, c *claim, verb contract.Verb, what string, look func(context.Context) (bool, error)) error {
	err := r.until(ctx, r.limit(), what, func(ctx context.Context) (bool, error) {
		done, err := look(ctx)
		if done || isVerdict(err) {
			return done, err
		}
		hopeless := r.hopeless(ctx, c, verb)
		if isVerdict(hopeless) {
			return false, hopeless
		}
		return false, cmp.Or(err, hopeless)
	})
	return r.orBroken(ctx, c, verb, err)
}

// limit is how long a run may take, with its start and with the pause after one that was killed.
func (r *Run) limit() time.Duration { return r.Config.Timeout + 2*time.Minute }

// claim creates a claim of the trial's own. With WaitForFirstConsumer a pod lets the scheduler select
// its node.
func (t *trial) claim(ctx context.Context, change ...func(*corev1.PersistentVolumeClaim)) (*claim, error) {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", t.name, len(t.claims)+1), Labels: t.labels()},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &t.Class.Name,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: t.Size}},
		},
	}
	for _, change := range change {
		change(c)
	}
	made, err := t.Client.CoreV1().PersistentVolumeClaims(t.namespace.Name).Create(ctx, c, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create a claim: %w", err)
	}
	t.report.Claims++
	out := &claim{PersistentVolumeClaim: made, disturbed: map[string]string{}}
	t.claims = append(t.claims, out)
	if t.Class.VolumeBindingMode != nil && *t.Class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
		err = t.createConsumer(ctx, out)
	}
	return out, err
}

// bound waits until a claim is bound, and returns its PersistentVolume.
func (t *trial) bound(ctx context.Context, c *claim) (*corev1.PersistentVolume, error) {
	var pv *corev1.PersistentVolume
	err := t.await(ctx, c, contract.Provision, "the claim "+c.Name+" to be bound", func(ctx context.Context) (bool, error) {
		now, err := t.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
		if err != nil || now.Status.Phase != corev1.ClaimBound {
			return false, err
		}
		t.show("the claim "+c.Name, now.Annotations)
		pv, err = t.Client.CoreV1().PersistentVolumes().Get(ctx, now.Spec.VolumeName, metav1.GetOptions{})
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	t.show("the PersistentVolume "+pv.Name, pv)
	why := t.whyKept(pv)
	if why != nil { // the dispatcher keeps a volume that another claim may have, too
		why = cmp.Or(t.whyShared(ctx, pv), why)
	}
	return pv, errors.Join(t.deleteConsumer(ctx, c), why)
}

// whyShared returns which other PersistentVolume stands for the same volume, nil for none.
func (r *Run) whyShared(ctx context.Context, pv *corev1.PersistentVolume) error {
	all, err := r.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the PersistentVolumes: %w", err)
	}
	for i := range all.Items {
		if other := &all.Items[i]; other.UID != pv.UID && pvs.SourceKey(other) == pvs.SourceKey(pv) && pvs.NodeOf(other) == pvs.NodeOf(pv) {
			return broken("the PersistentVolumes %s and %s have the same volume source", pv.Name, other.Name)
		}
	}
	return nil
}

// whyKept returns why a volume is not deleted with its claim, nil if it is. The image may have made an
// older volume the claim's, whose data are not this run's to delete. The dispatcher keeps the volume of
// two PersistentVolumes, too: then the script that has written them has chosen nothing.
func (r *Run) whyKept(pv *corev1.PersistentVolume) error {
	policy := pv.Spec.PersistentVolumeReclaimPolicy
	switch {
	case policy == "" || policy == corev1.PersistentVolumeReclaimDelete:
		return nil
	case r.report.isBroken(provisionPV):
		return notTested("it needs %s", provisionPV)
	default:
		return notTested("the image gives the PersistentVolume %s the reclaim policy %s, so its volume remains in the storage. Remedy: test a class whose volumes are deleted", pv.Name, policy)
	}
}

// provisioned returns a new claim that is bound.
func (t *trial) provisioned(ctx context.Context, change ...func(*corev1.PersistentVolumeClaim)) (*claim, *corev1.PersistentVolume, error) {
	c, err := t.claim(ctx, change...)
	if err != nil {
		return nil, nil, err
	}
	pv, err := t.bound(ctx, c)
	return c, pv, err
}

// release deletes a claim, and the pod that uses it.
func (t *trial) release(ctx context.Context, c *claim) error {
	if err := t.deleteConsumer(ctx, c); err != nil || c.released {
		return err
	}
	err := t.deleteOwn(t.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Delete(ctx, c.Name, metav1.DeleteOptions{Preconditions: uidOf(c)}), "the claim "+c.Name)
	c.released = err == nil
	return err
}

// remove deletes a claim and waits until nothing is left of it. What the storage still lists is left,
// too.
func (t *trial) remove(ctx context.Context, c *claim) error {
	if c.removed {
		return nil
	}
	if c.restore != nil {
		if err := c.restore(ctx); err != nil {
			return err
		}
	}
	if err := t.release(ctx, c); err != nil {
		return err
	}
	return t.removed(ctx, c)
}

func (t *trial) removed(ctx context.Context, c *claim) error {
	err := t.await(ctx, c, contract.Delete, "nothing to be left of the claim "+c.Name, func(ctx context.Context) (bool, error) {
		left, err := t.leftOf(ctx, c)
		if err == nil && left != "" {
			err = errors.New(left + " is left")
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	volumes, err := t.volumesOf(ctx, c.UID)
	if err == nil && len(volumes) > 0 {
		err = broken("the storage still lists the volume %s of the claim, after exit code 0", volumes[0].Volume)
	}
	c.removed = err == nil
	return err
}

// leftOf returns what is left of a claim in the cluster, empty if nothing is. When the dispatcher has
// done all it does, a Secret that is left remains.
func (t *trial) leftOf(ctx context.Context, c *claim) (string, error) {
	now, err := t.Client.CoreV1().PersistentVolumeClaims(c.Namespace).Get(ctx, c.Name, metav1.GetOptions{})
	if err == nil && now.UID == c.UID {
		return "the claim", nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	pv := contract.PVName(string(c.UID))
	if has, err := t.Client.CoreV1().PersistentVolumes().Get(ctx, pv, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return "the PersistentVolume " + pv, errors.Join(err, t.whyKept(has))
	}
	all, err := t.runsOf(ctx, c.UID, "")
	if i := slices.IndexFunc(all, func(run ran) bool { return run.held }); err != nil || i >= 0 {
		return "the record of a Job", err
	}
	secrets, err := t.Client.CoreV1().Secrets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelClaimUID + "=" + string(c.UID)})
	if err == nil && len(secrets.Items) > 0 {
		err = broken("the Secret %s/%s of the volume is left", secrets.Items[0].Namespace, secrets.Items[0].Name)
	}
	return "", err
}

// end removes the trial's claims, and returns why it could not. What it has left is tried again at the
// end of the run.
func (t *trial) end(ctx context.Context) (left error) {
	for _, c := range t.claims {
		if c.removed || slices.Contains(t.early, c) {
			continue
		}
		if err := t.remove(ctx, c); err != nil {
			t.left = append(t.left, c)
			if !c.untested {
				left = errors.Join(left, err)
			}
		}
	}
	return left
}

// selectorOf selects the Jobs of a claim.
func selectorOf(uid types.UID) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: jobs.LabelMember + string(uid)}
}
