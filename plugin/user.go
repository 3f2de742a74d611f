package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// ExplainToUser says why a claim is as it is, as far as a user knows who may read no Jobs: the
// claim's annotations and the events about it. notRead are the kinds that the user may not read.
func ExplainToUser(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim, notRead []string) (*Report, error) {
	r := newReport(string(claim.UID))
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	r.Claim, r.Class, r.Size = claim.Namespace+"/"+claim.Name, storagehelpers.GetPersistentVolumeClaimClass(claim), size.String()
	r.Phase, r.Created, r.NotRead = string(claim.Status.Phase), timeOf(claim.CreationTimestamp.Time), notRead
	r.Volume = claim.Spec.VolumeName
	if claim.Status.Phase == corev1.ClaimBound && len(claim.Status.AllocatedResourceStatuses) == 0 {
		r.State = OK
		return r, nil
	}
	last, err := lastEvent(ctx, client, claim)
	switch {
	case err != nil:
		return nil, err
	case last == nil:
		r.State, r.Next = Working, "the dispatcher or Kubernetes says more in an event about the claim. An administrator sees more than you"
	case last.Type == corev1.EventTypeWarning:
		r.fail(decide.Problem{Reason: last.Reason, Note: last.Message})
		r.Remedy = cmp.Or(r.Remedy, "ask an administrator, who sees the Job: kubectl flex why --namespace="+claim.Namespace+" "+claim.Name)
	default:
		r.State, r.Reason, r.Next = Working, quote.Name(last.Reason), quote.Lines(last.Message)
	}
	if result := claim.Annotations[contract.AnnMessage]; r.Cause == "" && result != "" && claim.Annotations[contract.AnnResult] == "failed" {
		r.State, r.Cause = Failed, quote.Lines(result)
	}
	return r, nil
}

// lastEvent returns the newest event about a claim, of any reporter, or nil.
func lastEvent(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim) (*corev1.Event, error) {
	list, err := client.CoreV1().Events(claim.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(claim.UID)).String(),
	})
	if apierrors.IsForbidden(err) || err == nil && len(list.Items) == 0 {
		return nil, nil //nolint:nilnil // nil stands for "none is known"
	}
	if err != nil {
		return nil, fmt.Errorf("list the events about the claim: %w", err)
	}
	last := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return eventTime(a).Compare(eventTime(b)) })
	return &last, nil
}

// eventTime returns when an event was seen last. Which field has it depends on the reporter's
// client.
func eventTime(e corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	default:
		return e.EventTime.Time
	}
}
