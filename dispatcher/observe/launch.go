package observe

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// ConfigFor returns the config under which a verb would run. An expand runs under the revision that
// made the volume, as a delete does.
func (o *Observation) ConfigFor(verb contract.Verb) resolve.Resolved {
	if verb == contract.Provision {
		return o.Provision
	}
	return o.Delete
}

// StartOf returns what a run of a verb would start with.
func (o *Observation) StartOf(verb contract.Verb) slots.Start {
	plan, target := jobs.Plan{Config: o.ConfigFor(verb).Config}, o.View.Delete
	switch {
	case verb == contract.Provision:
		target = o.View.Provision
		plan.Request.SelectedNode = target.Node
	case o.PV != nil:
		plan.PV, plan.Request.SelectedNode = o.PV, o.VolumeNode.Name
	default: // an undo goes where the provision was
		if p := o.View.Newest(contract.Provision); p != nil {
			plan.Request.SelectedNode = p.Node
		}
	}
	plan.AnyNode = target.MissingNode != "" && target.NodeGonePolicy == config.AnyNode
	return slots.Start{Revision: plan.Config.Source.Revision(), Nodes: jobs.Nodes(plan)}
}

// GroupOf names the group of UIDs that can share a Job: everything that a Job has only once is the
// same for them. It returns nothing if the UID must have a Job of its own.
func (o *Observation) GroupOf(verb contract.Verb, mayBatch bool) string {
	cfg := o.ConfigFor(verb).Config
	if !mayBatch || cfg.BatchOf(verb) < 2 {
		return ""
	}
	class, node := cfg.Source.Class, ""
	if verb != contract.Provision {
		class = o.PV.Spec.StorageClassName // an administrator may have moved the PV to this revision
	}
	switch {
	case cfg.RunOn != config.RunOnSelected:
	case verb == contract.Provision:
		node = o.View.Provision.Node
	default:
		node = affinityOf(o.PV)
	}
	return strings.Join([]string{string(verb), cfg.Source.Revision(), class, node}, "\n")
}

func affinityOf(pv *corev1.PersistentVolume) string {
	b, err := json.Marshal(pv.Spec.NodeAffinity)
	if err != nil {
		return string(pv.UID) // a group of its own
	}
	return string(b)
}
