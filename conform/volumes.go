package conform

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

// mostRequests is how many claims are created at a time for a batch: the first gets a run of its own.
const mostRequests = 5

// testBatch creates claims at a time, of which one is refused if the image refuses any, and deletes
// them at a time.
func testBatch(ctx context.Context, t *trial) error {
	all, refused, err := t.claimsOfBatch(ctx)
	if err != nil {
		return err
	}
	if err := t.allBound(ctx, all, refused); err != nil {
		return err
	}
	shared, err := t.shared(ctx, all, refused, contract.Provision)
	if err != nil {
		return err
	}
	if err := t.removeAll(ctx, all); err != nil {
		return err
	}
	if _, err := t.shared(ctx, all, refused, contract.Delete); err != nil {
		return err
	}
	if shared == 0 {
		return notTested("no run had more than one request")
	}
	t.note = fmt.Sprintf("%d of %d claims shared runs", shared, len(all))
	return nil
}

// allBound waits until all claims but the one that is refused are bound, and checks that no two have
// one volume: what several runs of a script share mixes them up.
func (t *trial) allBound(ctx context.Context, all []*claim, refused *claim) error {
	var volumes []*corev1.PersistentVolume
	for _, c := range all {
		if c == refused {
			continue
		}
		pv, err := t.bound(ctx, c)
		if err != nil {
			return err
		}
		volumes = append(volumes, pv)
	}
	for _, pv := range volumes {
		if err := t.whyShared(ctx, pv); err != nil {
			return err
		}
	}
	return nil
}

// removeAll deletes claims at a time.
func (t *trial) removeAll(ctx context.Context, all []*claim) error {
	for _, c := range all {
		if err := t.release(ctx, c); err != nil {
			return err
		}
	}
	for _, c := range all {
		if err := t.removed(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// claimsOfBatch creates claims at a time. The last but one is refused, if the image refuses any.
func (t *trial) claimsOfBatch(ctx context.Context) (all []*claim, refused *claim, err error) {
	n := min(t.Config.BatchOf(contract.Provision)+1, mostRequests)
	result := t.report.of(undoRefused)
	for i := range n {
		var change []func(*corev1.PersistentVolumeClaim)
		p, _ := t.ofRefuses()
		refuse := i == n-2 && result != nil && result.Verdict == Kept && len(p.Data) == 0
		if refuse {
			change = append(change, p.change(t.Class.Name))
		}
		c, err := t.claim(ctx, change...)
		if err != nil {
			return nil, nil, err
		}
		if refuse {
			refused = c
		}
		all = append(all, c)
	}
	return all, refused, nil
}

// shared returns how many claims had a run together with others, and an error if such a run has
// failed for one of them, but for the one that is refused.
func (t *trial) shared(ctx context.Context, all []*claim, refused *claim, verb contract.Verb) (n int, err error) {
	for _, c := range all {
		its, err := t.endedRunsOf(ctx, c, verb)
		if err != nil {
			return n, err
		}
		for _, run := range its {
			if run.claims < 2 {
				continue
			}
			n++
			if !does(run.outcome.Verdict, c == refused) {
				return n, brokenBy(run, fmt.Sprintf("a run of %s for %d claims ended for one of them with %s (%s), and a run for that claim alone was done",
					verb, run.claims, run.outcome, run.outcome.Verdict))
			}
		}
	}
	return n, nil
}

// does reports whether a verdict is what is to become of a request of a batch. A disruption says
// nothing of the image.
func does(verdict contract.Verdict, refused bool) bool {
	switch verdict {
	case contract.Done, contract.Disrupted, contract.Unknown, contract.NotStarted:
		return true
	case contract.BadRequest, contract.NoCapacity:
		return refused
	default:
		return false
	}
}

// toMount is how long a pod may take to pull its image and mount its volume.
const toMount = 5 * time.Minute

// in runs a script in a pod that has a claim's volume at /data. away is a node that it should not be
// on. It returns the pod's node.
func (t *trial) in(ctx context.Context, c *claim, script, away string) (node string, err error) {
	name := fmt.Sprintf("%s-pod-%d", c.Name, t.Clock.Now().UnixNano()%1e9)
	pod := t.pod(c, name, corev1.Container{Image: t.Mount, Command: []string{"sh", "-euc", script}})
	if away != "" {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{away}}},
			}}},
		}}
	}
	if err := t.createPod(ctx, pod); err != nil {
		return "", err
	}
	err = t.until(ctx, toMount, "the pod "+name+" to end", func(ctx context.Context) (bool, error) {
		now, err := t.Client.CoreV1().Pods(t.namespace.Name).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			pod = now
		}
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed, err
	})
	return pod.Spec.NodeName, errors.Join(t.whyUnusable(ctx, pod, err), t.deletePod(ctx, name))
}

// whyUnusable returns why a pod that has ended, or was waited for in vain, could not use its volume,
// nil if it could.
func (t *trial) whyUnusable(ctx context.Context, pod *corev1.Pod, err error) error {
	switch pod.Status.Phase {
	case corev1.PodFailed:
		return &verdictError{verdict: Broken, note: "a pod cannot use the volume: it ended with an error", output: terminationOf(pod)}
	case corev1.PodPending:
		return &verdictError{verdict: Broken, note: "a pod cannot use the volume: " + err.Error(), output: t.warningOf(ctx, pod)}
	default:
		return err
	}
}

// terminationOf returns what a pod's container has said at its end.
func terminationOf(pod *corev1.Pod) string {
	for _, s := range pod.Status.ContainerStatuses {
		if end := s.State.Terminated; end != nil {
			return fmt.Sprintf("exit code %d\n%s", end.ExitCode, end.Message)
		}
	}
	return pod.Status.Message
}

// warningOf returns the newest warning about an object of this run, empty if there is none.
func (r *Run) warningOf(ctx context.Context, of metav1.Object) string {
	last, err := cluster.NewestWarning(ctx, r.Client, of.GetNamespace(), of.GetUID())
	if err != nil || last == nil {
		return "" // what it would explain says more than its error
	}
	return last.Reason + ": " + last.Note
}

// Scripts that write and read a token. What they print is the message of the container.
const (
	writes = "exec >/dev/termination-log 2>&1; echo %[1]s >/data/conform; sync"
	reads  = "exec >/dev/termination-log 2>&1; has=$(cat /data/conform); echo \"the file has $has\"; [ \"$has\" = %[1]s ]"
)

func testMount(ctx context.Context, t *trial) error {
	c, _, err := t.provisioned(ctx)
	if err != nil {
		return err
	}
	first, err := t.in(ctx, c, fmt.Sprintf(writes, c.UID), "")
	if err != nil {
		return err
	}
	second, err := t.in(ctx, c, fmt.Sprintf(reads, c.UID), first)
	if err == nil {
		t.note = fmt.Sprintf("written on the node %s, read on %s", first, second)
		err = t.remove(ctx, c)
	}
	return err
}

// testClone clones a volume. Its data are compared if a pod may mount volumes.
func testClone(ctx context.Context, t *trial) error {
	source, _, err := t.provisioned(ctx)
	if err != nil {
		return err
	}
	if t.Mount != "" {
		if _, err := t.in(ctx, source, fmt.Sprintf(writes, source.UID), ""); err != nil {
			return notTested("the source cannot be written to: %s", err)
		}
	}
	c, pv, err := t.provisioned(ctx, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source.Name}
	})
	if err != nil {
		return err
	}
	if want := source.Namespace + "/" + source.Name; pv.Annotations[contract.AnnCloneOf] != want {
		return broken("the PersistentVolume has the annotation %s: %q, and not %s", contract.AnnCloneOf, pv.Annotations[contract.AnnCloneOf], want)
	}
	if t.InMemory != nil {
		t.note = "by its annotation alone: no pod compares the data"
		return errors.Join(t.remove(ctx, c), t.remove(ctx, source))
	}
	if t.Mount == "" {
		return t.whyNotMounted()
	}
	if _, err := t.in(ctx, c, fmt.Sprintf(reads, source.UID), ""); err != nil {
		return err
	}
	return errors.Join(t.remove(ctx, c), t.remove(ctx, source))
}
