package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

const (
	// nodesAtOnce is how many nodes are listed at a time.
	nodesAtOnce = 4
	// abandonedAfter is how long a pod may wait for its gate alone until its audit is known to have
	// been killed: an audit that lives removes the gate when it next looks.
	abandonedAfter = time.Minute
)

// listNodes lists what a class has on nodes: on each that has PVs of the class, and on every other
// one where class and config allow a volume. An orphan may be all that a node has. No PV of a node
// that was not listed is taken for missing.
func (a *Auditor) listNodes(ctx context.Context, c Class, l *Look) error {
	if err := a.readNodes(ctx, &l.State); err != nil {
		return err
	}
	on, gone := audit.PVsOn(l.State, c.Name)
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		l.Faults = append(l.Faults, fmt.Errorf("class %s: %s, and %d PersistentVolumes there were not looked for. "+
			"Remedy: if it does not return, node-gone of the config says what becomes of them", c.Name, whereGone(name), gone[name]))
	}
	if l.State.OnNodes == nil {
		l.State.OnNodes = map[string]map[string][]audit.Volume{}
	}
	lists := map[string][]audit.Volume{}
	l.State.OnNodes[c.Name] = lists
	nodes := c.toBeAsked(l, on)
	for i, answer := range a.ask(ctx, c, nodes) {
		name := nodes[i].Name
		if answer.err != nil {
			l.Faults = append(l.Faults, notListed(c, name, on[name], answer.err))
			continue
		}
		lists[name] = answer.volumes
	}
	return nil
}

// toBeAsked returns the nodes on which a class is to be listed. on is how many PVs are where. One
// that cannot be listed now is a fault if it has PVs. A cordoned one without any is not listed: no
// run goes there for a new volume either.
func (c Class) toBeAsked(l *Look, on map[string]int) []*corev1.Node {
	var out []*corev1.Node
	for _, node := range l.State.Nodes {
		n := on[node.Name]
		why := c.whyNotAsked(node)
		if n == 0 && why == nil && node.Spec.Unschedulable {
			why = errors.New("it is cordoned. Remedy: run the audit again when it is not")
		}
		switch {
		case n == 0 && !c.allows(node):
		case why == nil:
			out = append(out, node)
		case n == 0:
			l.Notes = append(l.Notes, notListed(c, node.Name, n, why))
		default:
			l.Faults = append(l.Faults, notListed(c, node.Name, n, why))
		}
	}
	return out
}

// notListed says why a node was not listed, and how many PVs were not looked for.
func notListed(c Class, node string, pvs int, why error) error {
	if pvs == 0 {
		return fmt.Errorf("class %s: the node %s was not listed: %w", c.Name, node, why)
	}
	return fmt.Errorf("class %s: the node %s was not listed, and %d PersistentVolumes there were not looked for: %w", c.Name, node, pvs, why)
}

// whereGone names the nodes of PVs that no longer exist.
func whereGone(node string) string {
	if node == "" {
		return "no node of a node affinity exists"
	}
	return "the node " + quote.Name(node) + " no longer exists"
}

// readNodes reads the nodes, once in a look.
func (a *Auditor) readNodes(ctx context.Context, s *audit.State) error {
	if s.Nodes != nil {
		return nil
	}
	err := admin.Each(ctx, a.Client.CoreV1().Nodes().List, metav1.ListOptions{}, func(node *corev1.Node) {
		node = cut.Node(node)
		node.Status.VolumesInUse = nil
		s.Nodes = append(s.Nodes, node)
	})
	if err != nil {
		s.Nodes = nil
		return fmt.Errorf("list the nodes: %w", err)
	}
	return nil
}

// resolved returns what says on which nodes a class has volumes and runs.
func (c Class) resolved() *resolve.Resolved {
	r := &resolve.Resolved{Class: c.object, Config: c.Config}
	r.Target.OnSelectedNode = true
	return r
}

// allows reports whether a class may have volumes on a node.
func (c Class) allows(node *corev1.Node) bool { return c.resolved().Allows(node) }

// whyNotAsked returns why no Job of a class would run on a node now, or nil.
func (c Class) whyNotAsked(node *corev1.Node) error {
	switch {
	case !c.resolved().TakesRuns(node):
		return errors.New("node-selector or pod-template of the config exclude it. Remedy: let them include it")
	case !runs.IsReady(node):
		return errors.New("it is not Ready. Remedy: run the audit again when it is")
	default:
		return nil
	}
}

// answer is what one node has listed, or why it has not.
type answer struct {
	volumes []audit.Volume
	err     error
}

// ask lists nodes, a few at a time.
func (a *Auditor) ask(ctx context.Context, c Class, nodes []*corev1.Node) []answer {
	out := make([]answer, len(nodes))
	workqueue.ParallelizeUntil(context.WithoutCancel(ctx), nodesAtOnce, len(nodes), func(i int) {
		if out[i].err = ctx.Err(); out[i].err == nil {
			out[i].volumes, out[i].err = a.listNode(ctx, c, nodes[i])
		}
	})
	return out
}

// listNode returns what a class has on a node.
func (a *Auditor) listNode(ctx context.Context, c Class, node *corev1.Node) ([]audit.Volume, error) {
	job, err := listJob(c, node, a.Cluster)
	if err != nil {
		return nil, err
	}
	if job, err = a.createAlone(ctx, job); err != nil {
		return nil, err
	}
	return a.listed(ctx, c, job)
}

// createAlone creates a Job when there is no other of its name. A Job of another audit is not used,
// since what it has listed may be older than what is compared with it. It is ended only if its
// audit was killed before it could start the Job: nothing else would end it for long.
func (a *Auditor) createAlone(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	var startable time.Time // since when the other one is
	for until := a.Clock.Now().Add(a.Timeout); ; {
		created, err := a.create(ctx, job)
		if !apierrors.IsAlreadyExists(err) {
			return created, err
		}
		now := a.Clock.Now()
		other, err := a.another(ctx, job)
		switch {
		case err != nil:
			return nil, err
		case !now.Before(until):
			return nil, fmt.Errorf("the Job %s/%s exists already: another audit lists the node. Remedy: run the audit again a few minutes after that Job has ended", job.Namespace, job.Name)
		case other.startable() == nil:
			startable = time.Time{}
		case startable.IsZero():
			startable = now
		case now.Sub(startable) >= abandonedAfter:
			a.remove(ctx, other.job)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-a.Clock.After(lookEvery):
		}
	}
}
