package act

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/series"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// Writes keeps what was written until the caches show it.
type Writes interface {
	// Wrote notes the API server's answer to a write, Deleted an object that was deleted.
	Wrote(answer metav1.Object)
	Deleted(obj metav1.Object)
	// Exists notes that a Job exists that was to be created, and reports whether the caches should
	// have shown it by now.
	Exists(job *batchv1.Job) bool
}

// Actor carries out actions.
type Actor struct {
	Client   kubernetes.Interface
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	Slots    *slots.Slots
	Series   series.Series
	// Provisioner is the name that StorageClasses write.
	Provisioner string
	// KubeAPI is the API server's URL as images see it, ClusterUID the UID of the namespace
	// kube-system.
	KubeAPI, ClusterUID string
	// TrustUsername passes the claim's stamped username and groups on to images.
	TrustUsername bool
	// Writes are what the caches may not show yet.
	Writes Writes
	// Allowed is what PVs may use of a node, by namespace.
	Allowed jobs.Allowances
}

// Result is what the controller has to do after an action.
type Result struct {
	// RequeueAfter is when to observe the UID again, zero for when something changes.
	RequeueAfter time.Duration
	// Hint is for the next observation, which then comes at once. It is nil if nothing was learned.
	Hint *observe.Hint
}

// learned makes the UID be observed again at once, with what was learned from a refused write.
func learned(hint observe.Hint) Result { return Result{Hint: &hint} }

//nolint:gocyclo // a line per action
func (a *Actor) carryOut(ctx context.Context, o *observe.Observation, action decide.Action) (Result, error) {
	klog.FromContext(ctx).V(2).Info("Carrying out action", "uid", o.UID, "claim", o.At, "action", fmt.Sprintf("%T", action))
	switch d := action.(type) {
	case decide.Wait:
		a.reportKept(o, d)
		return a.requeueAt(a.reportLongRuns(o, o.Earlier(d.Until))), nil
	case decide.ReportProblem:
		if from := o.ReportedFrom(); a.Clock.Now().Before(from) {
			return a.requeueAt(from), nil
		}
		a.reportProblem(o, d.Problem)
		return a.repeatProblem(o, d), nil
	case decide.StoreRevision:
		return a.storeRevision(ctx, o)
	case decide.AwaitSlot:
		return a.awaitSlot(o, d), nil
	case decide.Reschedule:
		return Result{}, a.reschedule(ctx, o, d.Why)
	case decide.RemovePodFinalizer:
		return Result{}, a.freeOrphans(ctx, o)
	case decide.KeepVolume:
		return Result{}, a.keepVolume(ctx, o, d)
	case decide.CreatePV:
		return a.createPV(ctx, o, d.Run)
	case decide.PublishResult:
		return a.publishResult(ctx, o, d)
	case decide.SetFinalizer:
		return Result{}, a.setFinalizer(ctx, o, d)
	case decide.DeletePV:
		return Result{}, a.deletePV(ctx, o.PV)
	case decide.SetResizeStage:
		return Result{}, a.setResizeStage(ctx, o, d)
	case decide.Launch, decide.Confirm, decide.Cancel, decide.RecordOutcome, decide.ReleaseRecord, decide.AnnounceReschedule: // these are about a Job: see the controller's launch, and package run
	}
	return Result{}, fmt.Errorf("the action %T cannot be carried out for one claim", action)
}

// When a problem that persists is reported again: the API server deletes events after an hour.
// repeatAfter is for what waits for an administrator, repeatRarely for anything else. repeatDropped
// is for a report whose event was dropped, because too many were waiting.
const repeatAfter, repeatRarely, repeatDropped = 10 * time.Minute, 30 * time.Minute, time.Minute

// repeatProblem returns when a problem that was reported is looked at again.
func (a *Actor) repeatProblem(o *observe.Observation, d decide.ReportProblem) Result {
	result, again := a.requeueAt(o.Earlier(d.Until)), repeatRarely
	switch {
	case a.dropsWarnings(namespaceOf(o)):
		again = repeatDropped
	case reason.WaitsForAdministrator(d.Problem.Reason):
		again = repeatAfter
	}
	if result.RequeueAfter == 0 || result.RequeueAfter > again {
		result.RequeueAfter = again
	}
	return result
}

// namespaceOf returns for which namespace the report of a problem is counted: see concerned.
func namespaceOf(o *observe.Observation) string {
	if claim := cmp.Or(o.Holder, o.Claim); claim != nil {
		return claim.Namespace
	}
	return o.At.Namespace
}

// dropsWarnings reports whether an event that is counted for a namespace would not be recorded now,
// because too many are waiting.
func (a *Actor) dropsWarnings(namespace string) bool {
	r, isBounded := a.Recorder.(interface{ IsFull(namespace string) bool })
	return isBounded && r.IsFull(namespace)
}

// saysWhatIsLeft reports whether an action gives up the last that is known of something in the
// storage, and its event says so.
func saysWhatIsLeft(o *observe.Observation, action decide.Action) bool {
	switch d := action.(type) { //nolint:gochecksumtype // no other gives up anything
	case decide.SetFinalizer:
		return d.LeftBehind != ""
	case decide.RemovePodFinalizer:
		return slices.ContainsFunc(o.Pods[""], o.MayOrphanHaveLeft)
	default:
		return false
	}
}

// requeueAt returns the Result of waiting for a time. The wait is a little long rather than short:
// an observation that is too early would only wait again.
func (a *Actor) requeueAt(at time.Time) Result {
	if at.IsZero() {
		return Result{}
	}
	return Result{RequeueAfter: max(at.Sub(a.Clock.Now()), 0) + 10*time.Millisecond}
}
