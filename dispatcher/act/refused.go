package act

import (
	"cmp"
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Do carries out one action: at most one write, then its event and log line. A write that is
// refused for good, or that the object does not show, is reported, and tried again a while later.
// Until then, what does not depend on it is decided without it. What gives up the last that is
// known of a volume waits while its event would be dropped: it cannot be emitted later.
func (a *Actor) Do(ctx context.Context, o *observe.Observation, action decide.Action) (Result, error) {
	a.reportWithoutFinalizer(o)
	if saysWhatIsLeft(o, action) && a.dropsWarnings(o.At.Namespace) {
		return Result{RequeueAfter: repeatDropped}, nil
	}
	result, err := a.carryOut(ctx, o, action)
	return a.unlessRefused(ctx, o, action, result, err)
}

// unlessRefused returns how an action ended. A refused write is reported and learned from.
func (a *Actor) unlessRefused(ctx context.Context, o *observe.Observation, action decide.Action, result Result, err error) (Result, error) {
	if !patch.IsRefused(err) {
		return result, err
	}
	return Result{Hint: a.Refused(ctx, o, decide.RunOf(action), action, err)}, nil
}

// Refused reports that a write was refused, on a claim and on the Job of a run, if it names one. It
// returns what is learned from that.
func (a *Actor) Refused(ctx context.Context, o *observe.Observation, run string, action decide.Action, err error) *observe.Hint {
	klog.FromContext(ctx).Error(err, "The API server refused a write", "claim", o.At, "uid", o.UID)
	a.ReportRefused(o, run, err)
	return &observe.Hint{Refused: []string{decide.WriteOf(action)}}
}

// ReportRefused emits that a write was refused, and the remedy, on the claim and on the Job of a run or the PV
// that was to be written.
func (a *Actor) ReportRefused(o *observe.Observation, run string, cause error) {
	a.emitOnTargets(o, o.Jobs[run], reason.WriteRefused, reason.RefusedWrite(cause.Error()).String())
}

// ReportFailed emits on the same objects that a write fails again and again.
func (a *Actor) ReportFailed(o *observe.Observation, run string, cause error) {
	a.emitOnTargets(o, o.Jobs[run], reason.WriteFailed, reason.FailedWrite(cause.Error()).String())
}

// emitOnTargets emits a warning about a write on the claim, and on the Job or PV that was to be
// written.
func (a *Actor) emitOnTargets(o *observe.Observation, job *batchv1.Job, why, note string) {
	var about []runtime.Object
	if claim := cmp.Or(o.Holder, o.Claim); claim != nil {
		about = append(about, claim)
	}
	if job != nil {
		about = append(about, job)
	}
	if o.PV != nil && (job == nil || o.PV.DeletionTimestamp != nil || pvs.IsReleased(o.PV)) { // its deletion may wait for that write
		about = append(about, o.PV)
	}
	if len(about) == 0 {
		for _, other := range jobs.InOrder(o.Jobs) {
			about = append(about, other)
		}
	}
	for _, obj := range about {
		a.emit(obj, causeOf(o, obj, nil), corev1.EventTypeWarning, why, note)
	}
}

// reportWithoutFinalizer reports each pod at work that does not have our finalizer. Its Job asks
// for it, so something removes it when pods are created. Such a pod can vanish before its outcome
// was read.
func (a *Actor) reportWithoutFinalizer(o *observe.Observation) {
	for _, r := range o.View.Runs {
		if r.State() < decide.RunEnded && runs.AnyWithoutFinalizer(o.Pods[r.Name]) {
			a.emitOnTargets(o, o.Jobs[r.Name], reason.WriteRefused, "the pod of the Job "+r.Name+" does not have the finalizer "+jobs.FinalizerRecord+
				", which its Job sets: a mutating webhook or policy removes it, and the pod's outcome may be lost. Remedy: exempt the pods of the namespace")
		}
	}
}
