package conform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// keyPodTemplate is the key of a ConfigMap that has the template of its pods.
const keyPodTemplate = "pod-template"

// killing is how runs of a verb are killed: begin lets one begin for a claim, and end waits until what
// it is to do is done.
type killing struct {
	verb  contract.Verb
	begin func(context.Context, *claim) error
	end   func(context.Context, *claim) error
}

// misses is how many kills may come after the end of the container.
const misses = 4

// kill kills runs of a verb: the first as soon as its container has started, the others at moments that
// are spread over the time that the verb took in the class itself. Each kill that comes too late shortens
// that time.
func (t *trial) kill(ctx context.Context, k killing) error {
	class, err := t.slowClass(ctx, k.verb)
	met, all, late := 0, 0, t.usual(k.verb)
	for ; err == nil && met < t.Kills && all < t.Kills+misses; all++ {
		_, part := math.Modf(float64(all) * 0.618)
		at := time.Duration(part * float64(late))
		var hit bool
		if hit, err = t.killOne(ctx, class, k, at); hit {
			met++
		} else {
			late = at
		}
	}
	if err != nil {
		return err
	}
	t.note = fmt.Sprintf("%d of %d kills came while the container was at work", met, all)
	if met == 0 {
		return notTested("%s, although its CPU is limited. Remedy: let the nodes enforce CPU limits", t.note)
	}
	return nil
}

// usual returns how long the promise of a verb took.
func (t *trial) usual(verb contract.Verb) time.Duration {
	promise := map[contract.Verb]string{contract.Provision: provision, contract.Delete: remove, contract.Expand: "expand"}[verb]
	if result := t.report.of(promise); result != nil {
		return time.Duration(result.Seconds * float64(time.Second))
	}
	return lookEvery
}

// killOne kills a run for a new claim, a time after its container has started. It reports whether the
// container was at work.
func (t *trial) killOne(ctx context.Context, class string, k killing, after time.Duration) (hit bool, err error) {
	c, err := t.claim(ctx, Provocation{}.change(class))
	if err == nil && k.verb != contract.Provision {
		_, err = t.bound(ctx, c)
	}
	for _, step := range []func(context.Context, *claim) error{
		k.begin, func(ctx context.Context, c *claim) error { return t.disturb(ctx, c, k.verb, after) }, k.end,
	} {
		if err == nil {
			err = step(ctx, c)
		}
	}
	if err != nil {
		return false, err
	}
	all, err := t.endedRunsOf(ctx, c, k.verb)
	for _, run := range all {
		hit = hit || c.disturbed[run.job] != "" && run.outcome.Verdict != contract.Done && run.outcome.ExitCode != nil
	}
	return hit, errors.Join(err, t.remove(ctx, c))
}

// disturb kills a claim's run of a verb, a time after its container has started. The kubelet sends
// SIGTERM, and SIGKILL two seconds later, however short the grace period is.
func (t *trial) disturb(ctx context.Context, c *claim, verb contract.Verb, after time.Duration) error {
	pod, err := t.started(ctx, c, verb)
	if err != nil || pod == nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.Clock.After(after):
	}
	c.disturbed[pod.Labels[batchv1.JobNameLabel]] = fmt.Sprintf("a kill %.1f s after the start of its container", after.Seconds())
	pods := t.Client.CoreV1().Pods(pod.Namespace)
	return t.deleteOwn(pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: uidOf(pod), GracePeriodSeconds: new(int64(1))}), "the pod "+pod.Name)
}

// started waits until the container of a claim's run of a verb has started, and returns its pod, or nil if
// the run has ended before it was seen.
func (t *trial) started(ctx context.Context, c *claim, verb contract.Verb) (pod *corev1.Pod, err error) {
	const often = lookEvery / 5
	return pod, t.poll(ctx, often, t.limit(), "a run of "+string(verb), func(ctx context.Context) (bool, error) {
		if pod, err = t.podOf(ctx, c, verb); err != nil || pod != nil {
			return err == nil && t.hasStarted(ctx, pod), err
		}
		all, err := t.runsOf(ctx, c.UID, verb)
		return slices.ContainsFunc(all, func(run ran) bool { return run.outcome != nil }), err
	})
}

// hasStarted reports whether the container of a pod has started. The kubelet's event says so at once, and
// the status of the pod up to a second later.
func (t *trial) hasStarted(ctx context.Context, pod *corev1.Pod) bool {
	if runs.HasStarted([]*corev1.Pod{pod}) {
		return true
	}
	list, err := t.Client.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Started,involvedObject.uid=" + string(pod.UID)})
	return err == nil && slices.ContainsFunc(list.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.UID == pod.UID && e.InvolvedObject.FieldPath == "spec.containers{"+contract.Container+"}"
	})
}

// podOf returns the pod of a claim's run of a verb that has a node, or nil.
func (r *Run) podOf(ctx context.Context, c *claim, verb contract.Verb) (*corev1.Pod, error) {
	list, err := r.Client.CoreV1().Pods(r.Config.Source.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: contract.LabelClaimUID + "=" + string(c.UID) + "," + jobs.LabelVerb + "=" + string(verb),
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of a claim: %w", err)
	}
	i := slices.IndexFunc(list.Items, func(pod corev1.Pod) bool { return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil })
	if i < 0 {
		return nil, nil
	}
	return &list.Items[i], nil
}

// slowClass returns a class like that of the run, whose containers are slow, and end with SIGTERM.
func (t *trial) slowClass(ctx context.Context, verb contract.Verb) (string, error) {
	text, err := slowed(t.Config.Source.Data[keyPodTemplate], t.slowly(verb))
	if err != nil {
		return "", err
	}
	return t.copyClass(ctx, map[string]string{keyPodTemplate: text})
}

// slowed returns a pod-template whose container may use so many thousandths of a CPU, and is not the first
// process of its PID namespace: the kernel does not deliver SIGTERM to that unless it handles it, and
// within the two seconds to SIGKILL most scripts have done their work.
func slowed(template string, milli int64) (string, error) {
	var pod corev1.PodTemplateSpec
	if err := yaml.Unmarshal([]byte(template), &pod); err != nil {
		return "", fmt.Errorf("read the key %s: %w", keyPodTemplate, err)
	}
	pod.Spec.ShareProcessNamespace = new(true)
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == contract.Container })
	if i < 0 {
		i, pod.Spec.Containers = len(pod.Spec.Containers), append(pod.Spec.Containers, corev1.Container{Name: contract.Container})
	}
	resources := &pod.Spec.Containers[i].Resources
	for list, cpu := range map[*corev1.ResourceList]int64{&resources.Limits: milli, &resources.Requests: 0} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceCPU] = *resource.NewMilliQuantity(cpu, resource.DecimalSI)
	}
	text, err := yaml.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("write the key %s: %w", keyPodTemplate, err)
	}
	return string(text), nil
}

// slowly returns how much of a CPU a slow run of a verb may use, in thousandths: the least that the
// kernel can limit it to. What takes longer than a script gets more, so that one that needs a CPU for
// all that time takes a hundred times as long, and no more.
func (t *trial) slowly(verb contract.Verb) int64 {
	const least, script = 10, 6
	return max(least, int64((t.usual(verb).Seconds()-script)*least))
}
