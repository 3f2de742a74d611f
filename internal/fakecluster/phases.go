package fakecluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Phase is one thing that a container does, a time after the one before. It goes on after it unless
// Does returns how it ends. After its last phase it ends well.
type Phase struct {
	After time.Duration
	Does  func(*Run) *Exit
}

// InPhases is an image that works for a while before it makes the volume, before it writes the PV,
// and before it ends. Other verbs do their work after the first of these times.
func InPhases(before, between, after time.Duration) func(*Run) []Phase {
	return func(r *Run) []Phase {
		work := func(does func()) func(*Run) *Exit { return func(*Run) *Exit { does(); return nil } }
		nothing := work(func() {})
		switch r.Verb {
		case contract.Provision:
			return []Phase{{before, work(r.CreateVolume)}, {between, work(func() { r.WritePV() })}, {after, nothing}}
		case contract.Delete:
			return []Phase{{before, work(r.DeleteVolume)}, {between + after, nothing}}
		case contract.Expand:
			return []Phase{{before, work(r.ExpandVolume)}, {between + after, nothing}}
		default:
			return []Phase{{before, nothing}}
		}
	}
}

// member is what a container with phases still has to do for one of its claims.
type member struct {
	run    *Run
	phases []Phase
	due    time.Time
	exit   *Exit
}

// startPhases starts the container of a pod whose image has phases. It works from then on whatever
// becomes of its pod, until its kubelet ends it.
func (c *Cluster) startPhases(pod *corev1.Pod, image Image) {
	k := &Container{Pod: pod, runs: c.runsOf(pod), cancel: func() {}}
	for _, r := range k.runs {
		m := &member{run: r, phases: image.Phases(r), due: c.clock.Now()}
		if len(m.phases) > 0 {
			m.due = m.due.Add(m.phases[0].After)
		}
		k.members = append(k.members, m)
	}
	c.Runs = append(c.Runs, k.runs...)
	c.containers[pod.UID] = k
}

// runPhases lets the containers with phases do what is due, also those of which no pod shows any
// more that they work. One on a frozen node does nothing. When that goes on, a container may do one
// more thing before the kubelet ends it.
func (c *Cluster) runPhases() {
	for _, k := range c.working() {
		if k.members == nil || k.exit != nil || c.Frozen[k.Pod.Spec.NodeName] {
			continue
		}
		for _, m := range k.members {
			c.runPhase(m)
		}
		switch late := c.due(c.deadlineOf(c.known(k))); {
		case !slices.ContainsFunc(k.members, func(m *member) bool { return m.exit == nil }):
			k.exit = new(k.judge())
		case late:
			k.exit = &Exit{Code: sigkill}
		}
	}
}

// known returns the pod of a container as its kubelet knows it.
func (c *Cluster) known(k *Container) *corev1.Pod {
	if pod, exists := sharedOne[*corev1.Pod](c, k.Pod.Namespace, k.Pod.Name); exists && pod.UID == k.Pod.UID && !c.CutOff[k.Pod.Spec.NodeName] {
		k.Pod = pod
	}
	return k.Pod
}

// runPhase does the next thing for a claim, if it is due.
func (c *Cluster) runPhase(m *member) {
	for m.exit == nil && len(m.phases) > 0 && c.due(m.due) {
		m.exit = m.phases[0].Does(m.run)
		if m.phases = m.phases[1:]; len(m.phases) > 0 {
			m.due = m.due.Add(m.phases[0].After)
			if c.Server.stepped {
				break
			}
		}
	}
	if m.exit == nil && len(m.phases) == 0 {
		m.exit = &Exit{}
	}
}

// judge returns how a container ends by how it has ended for each of its claims.
func (k *Container) judge() Exit {
	if len(k.members) == 1 {
		return *k.members[0].exit
	}
	var all Exit
	for _, m := range k.members {
		if m.exit.Code != 0 {
			all.Code = 75
		}
		all.Message += m.run.ResultLine(m.exit.Code, m.exit.Message)
	}
	return all
}

// endPhases reports how the container of a pod has ended.
func (c *Cluster) endPhases(pod *corev1.Pod, image Image) {
	k := c.containers[pod.UID]
	switch {
	case k == nil:
		c.startPhases(pod, image)
	case k.exit == nil:
	case k.exit.Code == sigkill && c.due(c.deadlineOf(pod)):
		c.terminate(pod, *k.exit, "DeadlineExceeded")
	default:
		c.end(pod, image, *k.exit)
		c.stopContainer(pod.UID)
	}
}
