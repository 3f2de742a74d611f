package conform

import (
	"context"
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

// misses is how many kills may come before a container has started, or after it has ended.
const misses = 6

// kill kills runs of a verb. The first run is not killed: it says how long one takes. A kill that comes
// too early or too late says where the next one is to come. The moments of the others are spread.
func (t *trial) kill(ctx context.Context, k killing) error {
	class, err := t.slowClass(ctx, k.verb)
	if err != nil {
		return err
	}
	usual, _, err := t.killOne(ctx, class, k, 0)
	usual = max(usual, time.Second)
	early, late, met, all := time.Duration(0), usual, 0, 0
	for ; err == nil && met < t.Kills && all < t.Kills+misses; all++ {
		_, part := math.Modf(0.5 + float64(all)*0.618)
		at := early + time.Duration(part*float64(late-early))
		var came moment
		switch _, came, err = t.killOne(ctx, class, k, max(at, 1)); came {
		case atWork:
			met++
		case tooEarly:
			early = at
		case tooLate:
			late = at
		}
		if late-early < lookEvery { // runs do not all take as long
			early, late = 0, usual
		}
	}
	if err != nil {
		return err
	}
	t.note = fmt.Sprintf("%d of %d kills came while the container was at work", met, all)
	if met == 0 {
		return notTested("%s, although its CPU is limited: a run takes %.1f s. The nodes must enforce CPU limits", t.note, usual.Seconds())
	}
	return nil
}

// killOne kills a run for a new claim, a time after it got its node, or none with a time of 0. It returns
// how long a run took that was not killed, and when the kill came.
func (t *trial) killOne(ctx context.Context, class string, k killing, after time.Duration) (took time.Duration, came moment, err error) {
	c, err := t.claim(ctx, Provocation{}.change(class))
	if err == nil && k.verb != contract.Provision {
		_, err = t.bound(ctx, c)
	}
	if err == nil {
		err = k.begin(ctx, c)
	}
	if err == nil {
		took, err = t.disturb(ctx, c, k.verb, after)
	}
	if err == nil {
		err = k.end(ctx, c)
	}
	if err == nil {
		came, err = t.momentOf(ctx, c, k.verb)
	}
	if err == nil {
		err = t.remove(ctx, c)
	}
	return took, came, err
}

// disturb waits until a claim's run of a verb has a node, and kills it a time later. With a time of 0
// it waits until the run has ended, and returns how long that took. The kubelet sends SIGTERM, and
// SIGKILL two seconds later, however short the grace period is.
func (t *trial) disturb(ctx context.Context, c *claim, verb contract.Verb, after time.Duration) (took time.Duration, err error) {
	var pod *corev1.Pod
	ended := func(ctx context.Context) (bool, error) {
		all, err := t.runsOf(ctx, c.UID, verb)
		return slices.ContainsFunc(all, func(run ran) bool { return run.outcome != nil }), err
	}
	err = t.until(ctx, t.limit(), "a run of "+string(verb), func(ctx context.Context) (bool, error) {
		if pod, err = t.podOf(ctx, c, verb); pod != nil || err != nil {
			return pod != nil, err
		}
		return ended(ctx)
	})
	if err != nil || pod == nil {
		return 0, err
	}
	began := t.Clock.Now()
	if after == 0 {
		err = t.until(ctx, t.limit(), "a run of "+string(verb)+" to end", ended)
		return t.Clock.Since(began), err
	}
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-t.Clock.After(after):
	}
	c.disturbed[pod.Labels[batchv1.JobNameLabel]] = fmt.Sprintf("a kill %.1f s after its pod got a node", after.Seconds())
	pods := t.Client.CoreV1().Pods(pod.Namespace)
	return 0, t.deleteOwn(pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: uidOf(pod), GracePeriodSeconds: new(int64(1))}), "the pod "+pod.Name)
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

// moment is when a kill came: before the container had started, after it had ended, or between.
type moment int

const (
	tooLate moment = iota
	tooEarly
	atWork
)

// momentOf returns when the kill of a claim's run came, by the outcome of that run.
func (t *trial) momentOf(ctx context.Context, c *claim, verb contract.Verb) (moment, error) {
	all, err := t.endedRunsOf(ctx, c, verb)
	i := slices.IndexFunc(all, func(run ran) bool { return c.disturbed[run.job] != "" })
	switch {
	case err != nil || i < 0 || all[i].outcome.Verdict == contract.Done:
		return tooLate, err
	case all[i].outcome.ExitCode == nil:
		return tooEarly, nil
	default:
		return atWork, nil
	}
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
// kernel can limit it to. A run that takes longer than that of a script by itself gets more, so that one
// that needs a CPU for all that time takes a hundred times as long, and no more.
func (t *trial) slowly(verb contract.Verb) int64 {
	const least, start = 10, 6 // seconds from a claim to its volume without a run's own
	seconds := 0.0
	if result := t.report.of(map[contract.Verb]string{contract.Provision: provision, contract.Delete: remove, contract.Expand: "expand"}[verb]); result != nil {
		seconds = result.Seconds
	}
	return max(least, int64((seconds-start)*least))
}
