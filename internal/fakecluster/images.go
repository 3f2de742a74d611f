package fakecluster

import (
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Image is what a container does. It takes its time and then does it all at once.
type Image struct {
	Takes time.Duration // 0: a second
	// Waits is why the kubelet does not start the container, empty if it does.
	Waits string
	// StartsAfter is how long after its pod's creation it starts, InitTakes how long an init
	// container works before, EndsAfter how long it goes on when its pod is deleted.
	StartsAfter, InitTakes, EndsAfter time.Duration
	// Lingers is how long after the end of its container its pod has ended.
	Lingers time.Duration
	Does    func(*Run) Exit
	// Batch, when set, does several requests at once. Without it a batch does each as if it were
	// alone, and writes a result line for each.
	Batch func([]*Run) Exit
	// Program, when set, is what the container runs instead, as long as it takes.
	Program Program
	// Phases, when set, is what the container does instead, a while after it has started. It may be
	// different for each run.
	Phases func(*Run) []Phase
	// Sidecar: the pod has a second container, which ends with the pod's deadline only.
	Sidecar bool
	// StartFails is why the runtime cannot start the container, StartError or ContainerCannotRun.
	// Rejected is why the kubelet rejects the pod, as OutOfcpu.
	StartFails, Rejected string
}

// Exit is how a container ends. Reason is what its node says of it, if that is no end of a program:
// Unknown or ContainerStatusUnknown after the node had no power.
type Exit struct {
	Code    int32
	Message string
	Reason  string
}

// Run is what a container does for one claim.
type Run struct {
	Pod     *corev1.Pod
	Image   string
	At      time.Time
	Verb    contract.Verb
	Request contract.Request
	PV      *corev1.PersistentVolume
	// Number among the runs of this verb for this claim, from 1.
	Number int

	cluster *Cluster
}

// play lets an image do its work for every claim of a pod.
func (c *Cluster) play(image Image, pod *corev1.Pod) Exit {
	runs := c.runsOf(pod)
	c.Runs = append(c.Runs, runs...)
	switch {
	case len(runs) == 1:
		return image.Does(runs[0])
	case image.Batch != nil:
		return image.Batch(runs)
	default:
		return EachAlone(runs, image.Does)
	}
}

// EachAlone does the runs of a batch one after the other, as if each were alone, and reports on
// each.
func EachAlone(runs []*Run, does func(*Run) Exit) Exit {
	var all Exit
	for _, r := range runs {
		exit := does(r)
		if exit.Code != 0 {
			all.Code = 75
		}
		all.Message += r.ResultLine(exit.Code, exit.Message)
	}
	return all
}

// ResultLine returns the line with which a batch reports on one request.
func (r *Run) ResultLine(code int32, message string) string {
	result := map[string]any{"uid": r.Request.UID, "code": code}
	if message != "" {
		result["message"] = message
	}
	line, err := json.Marshal(result)
	if err != nil {
		panic(err)
	}
	return string(line) + "\n"
}

func (c *Cluster) runsOf(pod *corev1.Pod) []*Run {
	in := c.inputOf(pod.Name, &pod.ObjectMeta, &pod.Spec)
	var out []*Run
	for i, request := range in.requests {
		r := &Run{
			Pod: pod, Image: pod.Spec.Containers[0].Image, At: c.clock.Now(),
			Verb: contract.Verb(VerbOf(&pod.Spec)), Request: request, PV: in.pvs[i], Number: 1, cluster: c,
		}
		for _, earlier := range c.Runs {
			if earlier.Verb == r.Verb && earlier.Request.UID == request.UID {
				r.Number++
			}
		}
		out = append(out, r)
	}
	return out
}

// Works is an image that does its work at the first try.
func Works(r *Run) Exit {
	switch r.Verb {
	case contract.Delete:
		r.DeleteVolume()
	case contract.Expand:
		r.ExpandVolume()
	case contract.List: // its answer is in the log
	default:
		r.CreateVolume()
		r.WritePV()
	}
	return Exit{}
}

// Script plays one step after the other for each claim's provision runs, and then works. Other
// verbs work.
func Script(steps ...func(*Run) Exit) func(*Run) Exit {
	return func(r *Run) Exit {
		if r.Verb == contract.Provision && r.Number <= len(steps) {
			return steps[r.Number-1](r)
		}
		return Works(r)
	}
}

// Always plays the same for every provision run. Other verbs work.
func Always(step func(*Run) Exit) func(*Run) Exit {
	return func(r *Run) Exit {
		if r.Verb == contract.Provision {
			return step(r)
		}
		return Works(r)
	}
}

// Fails ends at once, with nothing made.
func Fails(code int32, message string) func(*Run) Exit {
	return func(*Run) Exit { return Exit{Code: code, Message: message} }
}

// Halfway makes the volume and fails before there is a PV.
func Halfway(code int32) func(*Run) Exit {
	return func(r *Run) Exit {
		r.CreateVolume()
		return Exit{Code: code, Message: "claim: halfway"}
	}
}

// RunsOf returns the runs of a verb that came to their end by themselves, in order.
func (c *Cluster) RunsOf(verb contract.Verb) []*Run {
	return slices.DeleteFunc(slices.Clone(c.Runs), func(r *Run) bool { return r.Verb != verb })
}

// Verbs returns the verbs that ran, in order.
func (c *Cluster) Verbs() []string {
	var out []string
	for _, r := range c.Runs {
		out = append(out, string(r.Verb))
	}
	return out
}
