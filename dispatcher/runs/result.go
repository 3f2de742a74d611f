package runs

import (
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/quantity"
)

// resultsIn returns the results in a termination message. A result whose capacity is not a quantity
// is damaged, and is skipped.
func resultsIn(message string) []contract.Result {
	return slices.DeleteFunc(contract.DecodeResults(message), func(r contract.Result) bool {
		_, err := quantity.Parse(string(r.Capacity))
		return r.Capacity != "" && err != nil
	})
}

// capacityOf returns the size that a volume has now by its result, or nil.
func capacityOf(r contract.Result) *resource.Quantity {
	size, err := quantity.Parse(string(r.Capacity))
	if !r.IsDone() || err != nil || size.Sign() <= 0 {
		return nil
	}
	return resource.NewQuantity(size.Value(), resource.BinarySI)
}

// ReadFor returns what happened to one request of a Job that has ended. In a batch a request's own
// result counts. Without one, the run's verdict counts only where it holds for every request: a bad
// request must not make another one fail, nor succeed. For a single request the exit code counts.
// The message of its result is read all the same, so that an image need not know whether it serves
// a batch.
func ReadFor(job *batchv1.Job, uid string, pods []*corev1.Pod, now time.Time) Outcome {
	out := readFor(job, uid, pods, now)
	if out.Verdict.MadeNothing() && hasEarlierPodRun(pods) {
		out.Verdict = contract.TryAgain
	}
	return out
}

// hasEarlierPodRun reports whether a pod before the newest may have made something. A Job that is
// suspended and resumed has another pod, and its status is about that one only.
func hasEarlierPodRun(pods []*corev1.Pod) bool {
	last := NewestPod(pods)
	return slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p != last && !wasNeverMade(p) })
}

func readFor(job *batchv1.Job, uid string, pods []*corev1.Pod, now time.Time) Outcome {
	run := Read(job, pods, now)
	message, whole := resultLines(NewestPod(pods))
	own := lastResultOf(resultsIn(linesNaming(message, uid)), uid)
	if len(jobs.UIDs(job)) < 2 {
		if own != nil && own.Message != "" {
			run.Message = printable(own.Message + "\n" + run.Message)
		}
		return run
	}
	out := Outcome{Verdict: run.Verdict, Reason: run.Reason, Finished: run.Finished, MayRunUntil: run.MayRunUntil, Node: run.Node}
	if own != nil {
		return withResult(out, *own, job)
	}
	listed := resultsIn(message)
	failing := slices.ContainsFunc(listed, func(r contract.Result) bool { return !r.IsDone() })
	switch {
	case run.Verdict == contract.Done && whole && !failing:
		out.ExitCode = run.ExitCode
	case run.Verdict == contract.NotStarted:
		out.Message = run.Message // it is Kubernetes' own
	case run.Verdict == contract.Disrupted, run.Verdict == contract.Unknown:
	default:
		out.Verdict = contract.Unlisted
	}
	return out
}

// withResult returns the outcome of a request with a result of its own.
func withResult(o Outcome, r contract.Result, job *batchv1.Job) Outcome {
	o.Verdict, o.ExitCode, o.Reason = contract.VerdictOf(int(*r.Code)), r.Code, ""
	o.Message = printable(r.Message)
	if job.Labels[jobs.LabelVerb] == string(contract.Expand) {
		o.Capacity = capacityOf(r)
	}
	return o
}

// lastResultOf returns the last result of a request, or nil.
func lastResultOf(listed []contract.Result, uid string) *contract.Result {
	for _, r := range slices.Backward(listed) {
		if r.UID == uid {
			return &r
		}
	}
	return nil
}

// linesNaming returns the lines of a message that hold a UID. To decode all lines for each request
// of a batch would take most of the time of its record.
func linesNaming(message, uid string) string {
	var out strings.Builder
	for line := range strings.Lines(message) {
		if strings.Contains(line, uid) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// OutputOf returns the end of the output of a Job's container, printable. The results of requests
// that are done are left out before it is cut: half a result would count as output.
func OutputOf(pods []*corev1.Pod) string {
	if pod := NewestPod(pods); pod != nil {
		if terminated := terminatedState(pod); terminated != nil {
			return printable(WithoutResults(terminated.Message))
		}
	}
	return ""
}

// WithoutResults returns an output without the results of requests that are done and have no
// message.
func WithoutResults(output string) string {
	var out strings.Builder
	for line := range strings.Lines(output) {
		if listed := contract.DecodeResults(line); len(listed) != 1 || !listed[0].IsDone() || listed[0].Message != "" {
			out.WriteString(line)
		}
	}
	return out.String()
}

// What the kubelet keeps of a message: the end of the file, or of the log where there is no file.
// If a pod has many containers, it keeps only the beginning of that.
const (
	keptOfLog = 2048
	keptOfPod = 12 * 1024
)

// resultLines returns a pod's termination message as far as its lines may be results, and whether
// it is whole. A line whose beginning may be cut off is not a result.
func resultLines(pod *corev1.Pod) (message string, whole bool) {
	if pod == nil {
		return "", false
	}
	terminated := terminatedState(pod)
	if terminated == nil {
		return "", false
	}
	message = terminated.Message
	containers := len(pod.Spec.Containers) + len(pod.Spec.InitContainers) + len(pod.Spec.EphemeralContainers)
	most := min(contract.MaxMessage, keptOfPod/max(containers, 1))
	if whole = len(message) < most && len(message) != keptOfLog; !whole {
		_, message, _ = strings.Cut(message, "\n")
	}
	return message, whole
}
