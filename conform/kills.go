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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// keyPodTemplate is the key of a ConfigMap that has the template of its pods.
const keyPodTemplate = "pod-template"

// AnnHold is an annotation by which a cluster in memory knows which run to kill: the verb, and how
// long after the start of its container.
const AnnHold = "conform/hold"

// killing is how runs of a verb are killed: begin lets one begin for a claim, and end waits until what
// it is to do is done.
type killing struct {
	verb  contract.Verb
	begin func(context.Context, *claim) error
	end   func(context.Context, *claim) error
}

// misses is how many kills may come after the end of the container.
const misses = 6

// moments are parts of the time that a run took, where that is known. The second is its end: what a
// run has done is lost with its answer.
var moments = []float64{0.5, 1, 0.25, 0.75, 0.9, 0.1}

// kill kills runs of a verb, the first in the middle of the time that the verb took before, the others at
// moments that are spread over it. After one that came too late the next comes at a quarter of its moment.
func (t *trial) kill(ctx context.Context, k killing) (err error) {
	met, all, late := 0, 0, t.usual(k.verb)
	for ; err == nil && met < t.Kills && all < t.Kills+misses; all++ {
		_, part := math.Modf(0.5 + float64(met)*0.618)
		at := time.Duration(part * float64(late))
		if t.InMemory != nil {
			at = time.Duration(moments[all%len(moments)] * float64(t.InMemory.Took(k.verb)))
		}
		var hit bool
		if hit, err = t.killOne(ctx, k, at); hit {
			met++
		} else {
			late = at / 2 // the time that the verb took has the start of its pod in it
		}
	}
	if err != nil {
		return err
	}
	t.note = fmt.Sprintf("%d of %d kills came while the container was at work", met, all)
	if met == 0 && t.InMemory != nil {
		return notTested("%s", t.note)
	}
	if met == 0 {
		return notTested("%s. Remedy: --mount=IMAGE names an image with a shell, by which a run is held until it is killed", t.note)
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
func (t *trial) killOne(ctx context.Context, k killing, after time.Duration) (hit bool, err error) {
	class, err := t.killableClass(ctx, k.verb, after)
	if err != nil {
		return false, err
	}
	c, err := t.claim(ctx, Provocation{}.change(class))
	if err == nil && k.verb != contract.Provision {
		_, err = t.bound(ctx, c)
	}
	disturb := func(ctx context.Context, c *claim) error { return t.disturb(ctx, c, k.verb, after) }
	for _, step := range []func(context.Context, *claim) error{k.begin, disturb, k.end} {
		if err == nil {
			err = step(ctx, c)
		}
	}
	if err != nil {
		return false, err
	}
	hit, err = t.isHit(ctx, c, k.verb)
	return hit, errors.Join(err, t.remove(ctx, c))
}

// isHit reports whether the kill of a claim's run came while its container was at work.
func (t *trial) isHit(ctx context.Context, c *claim, verb contract.Verb) (bool, error) {
	all, err := t.endedRunsOf(ctx, c, verb)
	return slices.ContainsFunc(all, func(run ran) bool {
		return c.disturbed[run.job] != "" && run.outcome.Verdict != contract.Done && run.outcome.ExitCode != nil
	}), err
}

// killableClass returns a class like that of the run, for one run that is killed.
func (t *trial) killableClass(ctx context.Context, verb contract.Verb, after time.Duration) (string, error) {
	hold := ""
	if t.InMemory != nil {
		hold = fmt.Sprintf("%s %s", verb, after)
	}
	template, err := killable(t.Config.Source.Data[keyPodTemplate], t.holder(verb, after), hold)
	if err != nil {
		return "", err
	}
	return t.copyClass(ctx, fmt.Sprintf("%s-%d", t.name, len(t.claims)+1), map[string]string{keyPodTemplate: template})
}

// toHold is how long after its start a container that is to be held certainly is.
const toHold = 2 * time.Second

// disturb kills a claim's run of a verb, a time after its container has started, unless that has ended
// before. The kubelet sends SIGTERM, and SIGKILL two seconds later, however short the grace period is.
func (t *trial) disturb(ctx context.Context, c *claim, verb contract.Verb, after time.Duration) error {
	pod, err := t.started(ctx, c, verb)
	if err != nil || pod == nil {
		return err
	}
	pods, wait := t.Client.CoreV1().Pods(pod.Namespace), after
	if t.Mount != "" || t.InMemory != nil {
		wait += toHold
	}
	end, hasEnded := t.Clock.Now().Add(wait), false
	err = t.until(ctx, t.limit(), "the moment to kill a run", func(ctx context.Context) (bool, error) {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if hasEnded = apierrors.IsNotFound(err) || err == nil && slices.ContainsFunc(now.Status.ContainerStatuses, isEndOfWork); hasEnded {
			return true, nil
		}
		return !t.Clock.Now().Before(end), err
	})
	if err != nil || hasEnded {
		return err
	}
	c.disturbed[pod.Labels[batchv1.JobNameLabel]] = fmt.Sprintf("a kill %.1f s after the start of its container", after.Seconds())
	return t.deleteOwn(pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: uidOf(pod), GracePeriodSeconds: new(int64(1))}), "the pod "+pod.Name)
}

func isEndOfWork(s corev1.ContainerStatus) bool {
	return s.Name == contract.Container && s.State.Terminated != nil
}

// started waits until the container of a claim's run of a verb has started, and returns its pod, or nil if
// the run has ended before it was seen.
func (t *trial) started(ctx context.Context, c *claim, verb contract.Verb) (pod *corev1.Pod, err error) {
	return pod, t.until(ctx, t.limit(), "a run of "+string(verb), func(ctx context.Context) (bool, error) {
		if pod, err = t.podOf(ctx, c, verb); err != nil || pod != nil {
			return err == nil && runs.HasStarted([]*corev1.Pod{pod}), err
		}
		all, err := t.runsOf(ctx, c.UID, verb)
		return slices.ContainsFunc(all, func(run ran) bool { return run.outcome != nil }), err
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

// holds is what a sidecar does with a run of a verb that is the first for its claim: it stops every process
// but itself and the first of the PID namespace, a time after there is another one. That may not be the one
// by which an OCI runtime makes a container: the kubelet starts a sidecar before the container. Kubernetes makes
// "$$" of "$$$$" in a command.
const holds = `works() {
  for p in /proc/[0-9]*; do
    case $p in /proc/1 | /proc/$$$$) continue ;; esac
    read -r name <"$p/comm" || continue
    case $name in runc* | crun*) ;; *) return 0 ;; esac
  done
  return 1
}
case $JOB in %s-*-1)
  until works; do :; done 2>/dev/null
  sleep %.3f
  kill -STOP -1
  ;;
esac
exec sleep 86400`

// holder returns a sidecar that holds a run until it is killed, nil if there is no image for it. Without it
// the run of a script has ended before a kill takes effect.
func (t *trial) holder(verb contract.Verb, after time.Duration) *corev1.Container {
	if t.Mount == "" {
		return nil
	}
	return &corev1.Container{
		Name: "conform", Image: t.Mount, RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		Command: []string{"sh", "-c", fmt.Sprintf(holds, verb, after.Seconds())},
		Env: []corev1.EnvVar{{Name: "JOB", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + batchv1.JobNameLabel + "']"},
		}}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// killable returns a pod-template whose container is slow and not the first process of its PID namespace:
// the kernel does not deliver SIGTERM to that unless it handles it. A holder runs as the container's user,
// for it may signal no other.
func killable(template string, holder *corev1.Container, hold string) (string, error) {
	var pod corev1.PodTemplateSpec
	if err := yaml.Unmarshal([]byte(template), &pod); err != nil {
		return "", fmt.Errorf("read the key %s: %w", keyPodTemplate, err)
	}
	if hold != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnHold, hold)
	}
	pod.Spec.ShareProcessNamespace = new(true)
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == contract.Container })
	if i < 0 {
		i, pod.Spec.Containers = len(pod.Spec.Containers), append(pod.Spec.Containers, corev1.Container{Name: contract.Container})
	}
	its := &pod.Spec.Containers[i]
	for list, cpu := range map[*corev1.ResourceList]string{&its.Resources.Limits: "50m", &its.Resources.Requests: "0"} {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if holder != nil {
		if s := its.SecurityContext; s != nil {
			holder.SecurityContext.RunAsUser, holder.SecurityContext.RunAsGroup, holder.SecurityContext.RunAsNonRoot = s.RunAsUser, s.RunAsGroup, s.RunAsNonRoot
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, *holder)
	}
	text, err := yaml.Marshal(pod)
	if err != nil {
		return "", fmt.Errorf("write the key %s: %w", keyPodTemplate, err)
	}
	return string(text), nil
}
