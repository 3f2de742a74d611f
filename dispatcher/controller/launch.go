package controller

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// launch creates the Job of a run, and of others that wait and can share it. One that exists already under
// its name is never taken for it: it was made by another leader a moment ago, and the next look shows it. It
// returns when to look again, as act does.
func (c *Controller) launch(ctx context.Context, o *observation, a decide.Launch) (time.Duration, error) {
	plan, err := c.plan(ctx, o, a)
	if err != nil {
		return 0, err
	}
	job, err := c.launchTogether(ctx, o, a, plan)
	if job == nil && err == nil {
		job, err = c.create(ctx, o, plan)
	}
	if refused(err) {
		c.tellProblem(o, *problem("LaunchFailed", "the API server refused the Job %s/%s: %v", job.Namespace, job.Name, err))
	}
	if err != nil {
		c.admit(counterOf(plan.Config.Source))
		return 0, err
	}
	c.tellLaunched(ctx, o, job, a)
	if a.Verb == contract.Provision {
		c.tellWarnings(o.serve)
	}
	return 0, nil
}

// create builds the Job of a plan and creates it, with the turn of the first UID. It returns the Job as it
// was made, or was to be.
func (c *Controller) create(ctx context.Context, o *observation, plan jobs.Plan) (*batchv1.Job, error) {
	job, err := jobs.Build(plan)
	if err != nil {
		return nil, fmt.Errorf("build the Job of the claim %s: %w", o.at, err)
	}
	c.turns.use(o.uid, job)
	made, err := c.client.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		c.turns.unused(job)
		return job, fmt.Errorf("create the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return made, nil
}

// plan gathers what the Job is built from: the claim's request on provision, the PV's on delete and
// expand, and on an undo the very request of the run that is undone.
func (c *Controller) plan(ctx context.Context, o *observation, a decide.Launch) (jobs.Plan, error) {
	p := jobs.Plan{
		Verb: a.Verb, Number: a.Number, Attempt: a.Attempt, After: a.After, NothingBefore: a.NothingBefore, AnyNode: a.AnyNode,
		KubeAPI: c.opts.KubeAPI, Config: o.clean.cfg,
	}
	switch {
	case a.Verb == contract.Provision:
		topology, err := c.topology(ctx, o.serve.target.Node)
		if err != nil {
			return p, err
		}
		p.Config, p.Hash = o.serve.cfg, o.serve.target.Hash
		p.Request = jobs.Request(o.claim, o.serve.class, p.Config, topology[corev1.LabelTopologyZone])
		p.Request.Source, p.Request.SelectedTopology = o.serve.source, topology
		if c.opts.TrustUsername {
			p.Request.Username, p.Request.Group = o.claim.Annotations[jobs.AnnUsername], o.claim.Annotations[jobs.AnnGroups]
		}
		p.PV = pvs.Skeleton(p.Request, p.Config, c.opts.Provisioner)
	case a.Undo:
		undone := o.view.Newest(contract.Provision).Name // a batch's does not bear this UID's name
		request, pv, err := runs.RecordedRequest(o.jobs[undone].Spec.Template.Annotations, string(o.uid))
		if err != nil {
			return p, fmt.Errorf("read what the Job %s asked for: %w", undone, err)
		}
		p.Request, p.PV = request, pv
		p.Request.Undo = true
	default:
		p.PV = o.pv
		p.Request = jobs.RequestOf(o.pv, p.Config)
		if err := c.placed(ctx, &p.Request); err != nil {
			return p, err
		}
	}
	if a.Verb == contract.Expand {
		p.Hash, p.Request.Size = o.view.Expand.Hash, o.size.Value()
	}
	return p, nil
}

// configFor is the config under which a verb would run.
func (o *observation) configFor(verb contract.Verb) config.Config {
	if verb == contract.Provision {
		return o.serve.cfg
	}
	return o.clean.cfg
}

// topologyLabels tell where a node is.
var topologyLabels = []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelHostname}

// topology tells where a claim's selected node is. A node without the labels, or one that has gone, has
// none: that is no reason to hold up the claim.
func (c *Controller) topology(ctx context.Context, node string) (map[string]string, error) {
	if node == "" {
		return nil, nil
	}
	n, err := c.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at the selected node %s: %w", node, err)
	}
	out := map[string]string{}
	for _, label := range topologyLabels {
		if value := n.Labels[label]; value != "" {
			out[label] = value
		}
	}
	return out, nil
}
