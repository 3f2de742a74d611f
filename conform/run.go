package conform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// LabelRun is on every object that a run creates, with the name of the run's namespace.
const LabelRun = contract.Domain + "conform"

// Options are what an administrator chooses.
type Options struct {
	// Only are the promises to test, none for all. Skip are promises not to test, with the reason.
	Only []string
	Skip map[string]string
	// Size is that of each volume, Kills how many runs of a verb are killed.
	Size  resource.Quantity
	Kills int
	// Mount is an image with a shell, by which volumes are mounted. Without one none is.
	Mount   string
	Provoke Provocations
	// Keep leaves what belongs to a promise that is broken.
	Keep bool
}

// InMemory is a cluster in memory. It kills a run itself at the moment that AnnHold says, and shows
// that when conform deletes the pod. No pod mounts a volume there, claims cost little, and its clock
// does not pass as that of the machine does.
type InMemory struct {
	// Took returns how long the last run of a verb took that was done.
	Took func(contract.Verb) time.Duration
}

// Run tests the image of a class.
type Run struct {
	Options

	Client kubernetes.Interface
	Clock  clock.Clock
	Class  *storagev1.StorageClass
	Config config.Config
	// List returns what the storage has, if the image has the verb. ClusterUID is what the image is
	// to mark its volumes with.
	List       func(context.Context) ([]audit.Volume, error)
	ClusterUID string
	// InMemory is set if the cluster is one in memory, whose containers are processes.
	InMemory *InMemory
	// PodImage is the image of a pod for which the scheduler selects a node. It need not start.
	PodImage string

	namespace *corev1.Namespace
	report    *Report
	// early are the claims that delete deletes, once it is tested. Several promises look at the
	// volume of the first.
	early []*claim
	// shown are the texts that a user of this run's claims sees, by where they stand. secrets are
	// credentials by the Secret that has them.
	shown, secrets map[string]string
	// left are the claims of which something is left, and copies the classes of provocations.
	left   []*claim
	copies []string
	// gated is set while the API server may refuse the run's PersistentVolumes.
	gated bool
}

// Do tests the promises, one after the other. say is called with each result. What this run has
// created is deleted, also if ctx has ended. The error says why promises could not be tested.
func (r *Run) Do(ctx context.Context, say func(Result)) (report *Report, err error) {
	if err := r.whyNot(); err != nil {
		return nil, err
	}
	r.shown, r.secrets = map[string]string{}, map[string]string{}
	if err := r.createNamespace(ctx); err != nil {
		return nil, err
	}
	r.report = newReport(r)
	defer func() { err = errors.Join(err, r.cleanUp(ctx)) }()
	for _, p := range Promises() {
		if len(r.Only) > 0 && !slices.Contains(r.Only, p.Name) {
			continue
		}
		result := r.try(ctx, p)
		if ctx.Err() != nil {
			return r.report, fmt.Errorf("interrupted: %w", ctx.Err())
		}
		r.report.add(result)
		say(result)
	}
	return r.report, nil
}

// whyNot returns why a class cannot be tested, or nil.
func (r *Run) whyNot() error {
	for _, name := range slices.Concat(r.Only, slices.Sorted(maps.Keys(r.Skip)), slices.Sorted(maps.Keys(r.Provoke))) {
		if err := check(name); err != nil {
			return err
		}
	}
	switch {
	case r.Config.Source.Reclaim != string(corev1.PersistentVolumeReclaimDelete) || !r.Config.Supports(contract.Delete):
		return fmt.Errorf("the class %s retains volumes, or its config lacks the verb delete: the volumes of the test would remain in the storage. Remedy: test a class with the reclaimPolicy Delete", r.Class.Name)
	case r.Size.Sign() <= 0 || r.Kills < 1:
		return errors.New("the size and the number of kills must be positive")
	default:
		return nil
	}
}

func (r *Run) createNamespace(ctx context.Context) (err error) {
	r.namespace, err = r.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "flex-conform-", Labels: map[string]string{LabelRun: "true"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create a namespace for the claims of the test: %w", err)
	}
	return nil
}

// try tests one promise.
func (r *Run) try(ctx context.Context, p Promise) Result {
	result := Result{Promise: p.Name, Verdict: Kept}
	if err := r.whyNotTested(p); err != nil {
		return result.with(p, err)
	}
	t := &trial{Run: r, name: p.Name}
	var watch clock.PassiveClock = r.Clock
	if r.InMemory != nil {
		watch = clock.RealClock{}
	}
	began := watch.Now()
	err := p.test(ctx, t)
	result = result.with(p, err)
	if !r.Keep || result.Verdict != Broken {
		if left := t.end(ctx); err == nil {
			result = result.with(p, left)
		}
	}
	result.Seconds = watch.Since(began).Seconds()
	if result.Verdict == Kept {
		result.Note = strings.Join(slices.DeleteFunc([]string{t.note, r.unseen(p)}, func(s string) bool { return s == "" }), "; ")
	}
	return result
}

// unseen returns what a promise that is kept does not say: nothing shows the storage itself.
func (r *Run) unseen(p Promise) string {
	if p.ofStorage && (r.whyUnlisted() != nil || r.report.isBroken("list")) {
		return "by the exit code alone: the storage is not listed"
	}
	return ""
}

// whyNotTested returns why a promise is not tested, or nil.
func (r *Run) whyNotTested(p Promise) error {
	if reason, skip := r.Skip[p.Name]; skip {
		return &verdictError{verdict: Skipped, note: reason}
	}
	for _, name := range p.after {
		if result := r.report.of(name); result != nil && (result.Verdict == Broken || result.Verdict == NotTested || result.Verdict == Failed) {
			return notTested("it needs %s", name)
		}
	}
	if p.needs != nil {
		return p.needs(r)
	}
	return nil
}

// cleanUpWithin is how long a run that was interrupted may delete what it has created.
const cleanUpWithin = 5 * time.Minute

// cleanUp deletes what is left of a run. With its namespace the claims are deleted that this one waits
// for in vain: the dispatcher has the rest to do.
func (r *Run) cleanUp(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanUpWithin)
	defer stop()
	if r.report.Kept = r.Keep && r.report.Broken() > 0; r.report.Kept {
		return r.openGate(ctx)
	}
	r.report.Left = []string{}
	t := &trial{Run: r}
	for _, c := range slices.Concat(r.left, r.early) {
		if err := t.remove(ctx, c); err != nil {
			r.report.Left = append(r.report.Left, contract.PVName(string(c.UID)))
		}
	}
	err := errors.Join(r.deleteCopies(ctx), r.openGate(ctx))
	return errors.Join(err, r.deleteOwn(r.Client.CoreV1().Namespaces().Delete(ctx, r.namespace.Name, metav1.DeleteOptions{Preconditions: uidOf(r.namespace)}), "the namespace "+r.namespace.Name))
}

// deleteOwn returns why an object of this run was not deleted, or nil.
func (*Run) deleteOwn(err error, what string) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete %s: %w", what, err)
}

// uidOf limits a delete to the object that this run has created.
func uidOf(obj metav1.Object) *metav1.Preconditions {
	return &metav1.Preconditions{UID: new(obj.GetUID())}
}

// labels are those of every object of this run.
func (r *Run) labels() map[string]string { return map[string]string{LabelRun: r.namespace.Name} }

// owned returns metadata of a cluster-scoped object that is deleted with the run's namespace, should
// the run be killed.
func (r *Run) owned(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: r.labels(), OwnerReferences: []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Namespace", Name: r.namespace.Name, UID: r.namespace.UID,
	}}}
}

// volumesOf returns what the storage lists of a claim. It is empty if it lists nothing at all.
func (r *Run) volumesOf(ctx context.Context, uid types.UID) ([]audit.Volume, error) {
	if why := r.whyUnlisted(); why != nil || r.report.isBroken("list") {
		return nil, nil //nolint:nilerr // a storage that is not listed is no fault
	}
	all, err := r.List(ctx)
	if err != nil {
		err = fmt.Errorf("the verb list: %w", err)
	}
	return slices.DeleteFunc(all, func(v audit.Volume) bool { return v.UID != string(uid) }), err
}
