//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// all lists everything.
var all = metav1.ListOptions{}

func labelled(selector string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: selector}
}

// world is what one test works with: a namespace of its own, and what has to be cleaned up after
// it.
type world struct {
	t  *testing.T
	ns string
	// claims that the test made, as they were made.
	claims []*corev1.PersistentVolumeClaim
	// fixes undo what the test has stopped or blocked.
	fixes []func()
	// shipped is the kubeconfig of the test's own dispatchers, once there is one.
	shipped string
	// removals delete what the test made beside claims, the last first.
	removals []func()
}

// newWorld makes a namespace whose name begins with e2e- and name. It is deleted at the end of the
// test, with every claim and all that was made for one; what stays behind fails the test.
func newWorld(t *testing.T, name string) *world {
	t.Helper()
	w := &world{t: t}
	ns, err := kube.CoreV1().Namespaces().Create(w.ctx(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-" + name + "-"},
	}, metav1.CreateOptions{})
	w.must(err, "create a namespace")
	w.ns = ns.Name
	t.Cleanup(w.end)
	return w
}

// ctx outlives the test, since it is needed for the clean-up. Every request has a deadline of its
// own.
func (w *world) ctx() context.Context { return context.WithoutCancel(w.t.Context()) }

func (w *world) must(err error, what string) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}

// whenDone runs before the clean-up: dispatchers start again, gates open.
func (w *world) whenDone(fix func()) { w.fixes = append(w.fixes, fix) }

// remove runs when the test's claims no longer exist.
func (w *world) remove(removal func()) { w.removals = append(w.removals, removal) }

func (w *world) end() {
	defer w.removeNamespace()
	defer w.removeRest()
	if w.t.Failed() {
		w.dump()
	}
	for _, fix := range w.fixes {
		fix()
	}
	w.removeClaims()
}

func (w *world) removeRest() {
	for _, removal := range slices.Backward(w.removals) {
		removal()
	}
}

func (w *world) removeNamespace() {
	err := kube.CoreV1().Namespaces().Delete(w.ctx(), w.ns, metav1.DeleteOptions{})
	w.gone(err, "namespace "+w.ns)
}

// removeClaims deletes the test's pods and claims, and waits until nothing of them is left
// anywhere.
func (w *world) removeClaims() {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	w.must(kube.CoreV1().Pods(w.ns).DeleteCollection(w.ctx(), now, all), "delete the test's pods")
	w.must(kube.CoreV1().PersistentVolumeClaims(w.ns).DeleteCollection(w.ctx(), metav1.DeleteOptions{}, all), "delete the test's claims")
	for _, claim := range w.claims {
		w.eventually(2*time.Minute, "nothing to be left of the claim "+claim.Name, func(ctx context.Context) error {
			return nothingLeft(ctx, claim)
		})
	}
}

// gone accepts that an object that is deleted does not exist.
func (w *world) gone(err error, what string) {
	w.t.Helper()
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Errorf("delete %s: %v", what, err)
	}
}

// nothingLeft reports an error unless there is no claim, no PV, no Secret, no volume, and no Job
// that is held as a record.
func nothingLeft(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	uid := string(claim.UID)
	var left []error
	complain := func(found bool, err error, what string) {
		switch {
		case err != nil:
			left = append(left, err)
		case found:
			left = append(left, errors.New(what))
		}
	}
	now, err := kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
	complain(now.UID == claim.UID, known(err), "the claim is there")
	_, err = kube.CoreV1().PersistentVolumes().Get(ctx, "pvc-"+uid, metav1.GetOptions{})
	complain(err == nil, known(err), "the PersistentVolume is there")
	secrets, err := kube.CoreV1().Secrets("").List(ctx, labelled("flex-provisioner.io/claim-uid="+uid))
	complain(len(secrets.Items) > 0, err, "its Secret is there")
	volumes, err := volumesOf(ctx, uid)
	complain(len(volumes) > 0, err, fmt.Sprintf("Cinder has %v", volumes))
	held, err := heldJobs(ctx, uid)
	complain(len(held) > 0, err, "not released: "+strings.Join(held, " "))
	return errors.Join(left...)
}

// known drops the error that says that an object does not exist.
func known(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// poll calls look until it returns no error, and returns its last error. A call may outlast the
// timeout: the error of a cancelled request would say nothing.
func poll(ctx context.Context, timeout time.Duration, look func(context.Context) error) error {
	return pollEvery(ctx, 200*time.Millisecond, timeout, look)
}

// pollEvery does so with a pause of another length.
func pollEvery(ctx context.Context, pause, timeout time.Duration, look func(context.Context) error) error {
	last := errors.New("never looked")
	err := wait.PollUntilContextTimeout(ctx, pause, patience*timeout, true, func(context.Context) (bool, error) {
		last = look(ctx)
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	return last
}

// eventually waits until look returns no error, and fails the test with its last error otherwise.
func (w *world) eventually(timeout time.Duration, what string, look func(context.Context) error) {
	w.t.Helper()
	if err := poll(w.ctx(), timeout, look); err != nil {
		w.t.Fatalf("waited %s for %s: %v", timeout, what, err)
	}
}

// always fails the test as soon as look returns an error, within a time.
func (w *world) always(during time.Duration, what string, look func(context.Context) error) {
	w.t.Helper()
	var complaint error
	ctx := w.ctx()
	_ = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, during, true, func(context.Context) (bool, error) {
		complaint = look(ctx)
		return complaint != nil, nil
	})
	if complaint != nil {
		w.t.Fatalf("for %s %s: %v", during, what, complaint)
	}
}

// equal compares what was found with what was wanted.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func contains(t *testing.T, what, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%s: %q does not contain %q", what, text, part)
	}
}
