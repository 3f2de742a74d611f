package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// Explain says why the claim of a UID, or what is left of it, is as it is.
func (d *Dispatcher) Explain(ctx context.Context, uid types.UID) (*Report, error) {
	r, o, err := d.explain(ctx, uid)
	if err != nil {
		return nil, err
	}
	if made := d.madeFor(o); made != "" && r.State == OK {
		of, _, err := d.explain(ctx, made)
		if err != nil {
			return nil, err
		}
		r.adopt(of)
	}
	if d.idle != "" && r.State == Working {
		r.State, r.Cause = Failed, d.idle+", so no volume is created, expanded or deleted"
		r.Remedy = fmt.Sprintf("kubectl --namespace=%s get pods,events", d.At.Namespace)
	}
	return r, nil
}

func (d *Dispatcher) explain(ctx context.Context, uid types.UID) (*Report, *observe.Observation, error) {
	r := newReport(string(uid))
	o, action, err := d.next(ctx, uid, observe.Hint{})
	if err != nil {
		return nil, nil, err
	}
	refused := d.refusal(ctx, o, action)
	if publish, ok := action.(decide.PublishResult); ok && refused != nil && refused.Reason == reason.ResultNotShown {
		r.Warnings = append(r.Warnings, quote.Line(refused.Message))
		hint := observe.Hint{Unpublishable: publish.Run.Name, Success: publish.Success}
		if o, action, err = d.next(ctx, uid, hint); err != nil {
			return nil, nil, err
		}
		refused = d.refusal(ctx, o, action)
	}
	d.describe(r, o)
	d.judge(r, o, action)
	d.addBinding(ctx, r, o)
	if refused != nil {
		r.failBy(refused)
		r.Remedy = "let the API server accept what the cause names. The dispatcher tries it again"
	}
	return r, o, nil
}

// madeFor returns the UID of the claim for which the volume of another one was made, to which an
// administrator has passed it on. It is empty for any other claim. The dispatcher expands and deletes
// the volume under that UID.
func (d *Dispatcher) madeFor(o *observe.Observation) types.UID {
	if o.View.Claim != decide.ClaimBoundElsewhere {
		return ""
	}
	pv := d.caches.PVs.Named(o.Claim.Spec.VolumeName)
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != o.UID || whyNotMade(pv, d.Serving.Provisioner) != nil {
		return ""
	}
	return types.UID(pv.Annotations[contract.AnnClaimUID])
}

// describe fills in what there is.
func (d *Dispatcher) describe(r *Report, o *observe.Observation) {
	r.ClaimState = o.View.State().String()
	if o.At.Name != "" {
		r.Claim = o.At.String()
	}
	if c := o.Claim; c != nil {
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		r.Size, r.Phase, r.Created = size.String(), string(c.Status.Phase), timeOf(c.CreationTimestamp.Time)
		r.Class = shownClass(c)
	}
	if o.PV != nil {
		r.Volume, r.Class, r.Revision = o.PV.Name, cmp.Or(r.Class, quote.Name(o.PV.Spec.StorageClassName)), shownName(o.PV.Annotations[contract.AnnRevision])
	}
	if src := o.Provision.Config.Source; src.Name != "" {
		r.Config, r.Revision = src.Namespace+"/"+src.Name, src.Revision()
	}
	if old := o.Provision.Fallback; old != nil {
		r.Warnings = append(r.Warnings, quote.Line(old.Reason+": "+old.Note.String()))
	}
	for _, run := range byAge(o.View.Runs) {
		r.Runs = append(r.Runs, describeRun(o, run))
	}
}

// byAge returns runs, the oldest first.
func byAge(runs []decide.Run) []decide.Run {
	return slices.SortedFunc(slices.Values(runs), func(a, b decide.Run) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
}

func describeRun(o *observe.Observation, run decide.Run) Run {
	job := o.Jobs[run.Name]
	out := Run{
		Job: job.Namespace + "/" + job.Name, Verb: shownName(string(run.Verb)), Attempt: run.Attempt, Claims: max(len(run.UIDs), 1),
		State: run.State().String(), Node: shownName(cmp.Or(run.Outcome.Node, run.Node)), Created: job.CreationTimestamp,
	}
	if run.State() >= decide.RunEnded {
		out.Ended = timeOf(run.Outcome.Finished)
		out.Verdict, out.Outcome, out.Message = shownName(string(run.Outcome.Verdict)), quote.Line(run.Outcome.String()), quote.Lines(run.Outcome.Message)
	}
	return out
}

// shownName returns a name that others have written, as it may be printed. None stays none.
func shownName(name string) string {
	if name == "" {
		return ""
	}
	return quote.Name(name)
}

// shownClass returns the name of a claim's class, as it may be printed: the claim's user may have
// written it in an annotation, which the API server does not check.
func shownClass(claim *corev1.PersistentVolumeClaim) string {
	return shownName(storagehelpers.GetPersistentVolumeClaimClass(claim))
}
