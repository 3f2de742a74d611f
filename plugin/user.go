package plugin

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// ExplainToUser says why a claim is as it is, as far as a user knows who may read no Jobs. That is
// the claim's annotations and the events about it. notRead are the kinds that the user may not
// read.
func ExplainToUser(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim, notRead []string) (*Report, error) {
	r := newReport(string(claim.UID))
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	r.Claim, r.Class, r.Size = claim.Namespace+"/"+claim.Name, shownClass(claim), size.String()
	r.Phase, r.Created, r.NotRead = string(claim.Status.Phase), timeOf(claim.CreationTimestamp.Time), notRead
	r.Volume = shownName(claim.Spec.VolumeName)
	switch {
	case claim.DeletionTimestamp != nil:
		r.State, r.Next = Working, "Kubernetes deletes the claim when no pod uses it"
		return r, nil
	case claim.Status.Phase == corev1.ClaimBound && len(claim.Status.AllocatedResourceStatuses) == 0 && !pvs.WantsMore(claim):
		r.State = OK
		return r, nil
	}
	last, err := lastEvent(ctx, client, claim)
	if err != nil {
		return nil, err
	}
	if r.judgeEvent(claim, last); r.State == Failed {
		r.Remedy = cmp.Or(r.Remedy, remedyOfUser(r, claim), "ask an administrator, who sees more: kubectl flex why --namespace="+claim.Namespace+" "+claim.Name)
	}
	return r, nil
}

// judgeEvent says how a claim is doing by the newest event about it, which may be nil, and by its
// annotations.
func (r *Report) judgeEvent(claim *corev1.PersistentVolumeClaim, last *corev1.Event) {
	switch {
	case last != nil && last.Type == corev1.EventTypeWarning:
		r.failToUser(claim, last)
	case claim.Status.Phase == corev1.ClaimLost:
		r.fail(*decide.Problemf(reason.ClaimLost, "Kubernetes takes the claim for one that has lost its volume"))
	case claim.Annotations[contract.AnnResult] == "failed" && (last == nil || !isAtWork(*last)):
		r.State, r.Reason, r.Cause = Failed, reason.ProvisioningFailed, cmp.Or(quote.Lines(claim.Annotations[contract.AnnMessage]), "the last attempt failed")
	case last == nil:
		r.State, r.Next = Working, "the dispatcher or Kubernetes says more in an event about the claim. An administrator sees more than you"
	default:
		r.judgeNormal(claim, last)
	}
}

// judgeNormal says how a claim is doing by an event that is no warning. What comes next is the
// command's to say.
func (r *Report) judgeNormal(claim *corev1.PersistentVolumeClaim, last *corev1.Event) {
	r.State, r.Cause = Working, saidBy(last)
	switch {
	case isOfDispatcher(last, claim):
		r.Reason = shownName(last.Reason)
	case last.Reason == waitsForConsumer:
		r.Next = "create a pod that uses the claim"
	}
}

// waitsForConsumer is the reason of Kubernetes' event about a claim that no pod uses yet.
const waitsForConsumer = "WaitForFirstConsumer"

// isAtWork reports whether an event says that a Job was launched.
func isAtWork(e corev1.Event) bool {
	return e.Reason == reason.Provisioning || e.Reason == reason.Resizing
}

// waiting are the reasons of the events by which the PV controller says, every few seconds, that a claim
// waits for its provisioner, whatever is in the way of that.
var waiting = map[string]bool{"ExternalProvisioning": true, waitsForConsumer: true, "ExternalExpanding": true}

// lastEvent returns the newest event about a claim, of any reporter, or nil. One that only says that
// the claim waits does not count if there is any other.
func lastEvent(ctx context.Context, client kubernetes.Interface, claim *corev1.PersistentVolumeClaim) (*corev1.Event, error) {
	all, err := eventsAbout(ctx, client, claim)
	if apierrors.IsForbidden(err) {
		return nil, nil //nolint:nilnil // nil stands for "none is known"
	}
	if err != nil {
		return nil, fmt.Errorf("list the events about the claim: %w", err)
	}
	if last := newestOf(all, func(e corev1.Event) bool { return !waiting[e.Reason] }); last != nil {
		return last, nil
	}
	return newestOf(all, func(corev1.Event) bool { return true }), nil
}
