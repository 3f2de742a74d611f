package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// resolved is a config that can serve, or the problem with it.
type resolved struct {
	target decide.Target
	cfg    config.Config
	class  *storagev1.StorageClass
	source *contract.Source
	// from is the class's ConfigMap, if there is just one; faulty: the problem lies in it.
	from   *corev1.ConfigMap
	faulty bool
}

func problem(reason, format string, args ...any) *decide.Problem {
	return &decide.Problem{Reason: reason, Note: fmt.Sprintf(format, args...)}
}

// resolveServe finds how a pending claim would be provisioned now.
func (c *Controller) resolveServe(ctx context.Context, look looker, claim *corev1.PersistentVolumeClaim) (r resolved, err error) {
	if r.class = c.class(className(claim)); r.class == nil { // it went since the claim was looked at
		r.target.Problem = problem("WaitingForClass", "the class %s does not exist", className(claim))
		return r, nil
	}
	if r.target.Problem = unsupported(claim); r.target.Problem != nil {
		return r, nil
	}
	if r.source, r.target.Problem, err = c.resolveSource(ctx, claim); r.target.Problem != nil || err != nil {
		return r, err
	}
	if c.resolveConfig(&r); r.target.Problem != nil {
		return r, nil
	}
	request := jobs.Request(claim, r.class, r.cfg, "")
	request.Source = r.source
	r.target = decide.Target{
		Revision: r.cfg.Source.Revision(), Hash: jobs.Hash(request), Node: request.SelectedNode,
		RevisionStored: c.current(r.cfg.Source),
		HasSlot:   c.slot(claim.UID, r.cfg), MaxAttempts: r.cfg.MaxAttempts, Supported: true,
		NodeSelected: waits(r.class), OnSelectedNode: r.cfg.RunOn == config.RunOnSelected,
	}
	err = c.seeChosen(ctx, look, &r.target)
	return r, err
}

// resolveConfig reads the class's config, or, while an edit of it is faulty, its last good revision.
func (c *Controller) resolveConfig(r *resolved) {
	if r.from, r.target.Problem = c.configFor(r.class); r.target.Problem != nil {
		return
	}
	src := config.SourceOf(r.from, r.class)
	if r.cfg, r.target.Problem = c.read(src); r.target.Problem != nil {
		good, found := c.lastGood(src)
		if !found {
			r.faulty = true
			return
		}
		r.cfg = good
		r.cfg.Warnings = append(r.cfg.Warnings, r.target.Problem.Note+"; the last good revision, "+good.Source.Revision()+", stays in use")
		r.target.Problem = nil
	}
	if r.source != nil && !r.cfg.Clones {
		r.target.Problem = problem("DataSourceNotSupported", "the config %s/%s does not say, by data-sources: %s, that its image can copy a claim: "+
			"it might hand out an empty volume", r.cfg.Source.Namespace, r.cfg.Source.Name, kindClaim)
	}
}

// resolveClean finds how what was made, or may have been, would be deleted: under the revision that
// made it, even when its ConfigMap and its class have gone.
func (c *Controller) resolveClean(o *observation) resolved {
	name := o.madeUnder()
	if name == "" {
		return resolved{target: decide.Target{Problem: problem("RevisionMissing",
			"nothing tells under which config the volume was made: name its ControllerRevision, as namespace/name, in the PV's annotation %s "+
				"(kubectl get controllerrevisions -A -l %s=%s lists them), or set the PV's policy to Retain and delete the volume by hand",
			contract.AnnRevision, config.LabelManagedBy, config.ManagedBy)}}
	}
	stored := c.revision(name)
	if stored == nil {
		return resolved{target: decide.Target{Problem: problem("RevisionMissing",
			"the config revision %s, under which the volume was made, does not exist: restore that ControllerRevision, "+
				"or name another in the PV's annotation %s, or set the PV's policy to Retain and delete the volume by hand", name, contract.AnnRevision)}}
	}
	src, err := config.DecodeSource(stored.Data.Raw)
	if err != nil {
		return resolved{target: decide.Target{Problem: problem("RevisionDamaged", "the ControllerRevision %s: %v", name, err)}}
	}
	var r resolved
	if r.cfg, r.target.Problem = c.read(src); r.target.Problem != nil {
		return r
	}
	r.target = decide.Target{HasSlot: c.slot(o.uid, r.cfg), RevisionStored: true, Supported: r.cfg.Supports(contract.Delete)}
	return r
}

// madeUnder is the revision that made the volume, or the newest run that may have made one.
func (o *observation) madeUnder() string {
	if o.pv != nil && o.view.Volume.Proven() && o.pv.Annotations[contract.AnnRevision] != "" {
		return o.pv.Annotations[contract.AnnRevision]
	}
	if p := o.view.Newest(contract.Provision); p != nil {
		return p.Revision
	}
	return ""
}

// configFor finds the one ConfigMap of a class.
func (c *Controller) configFor(class *storagev1.StorageClass) (*corev1.ConfigMap, *decide.Problem) {
	ns := config.NamespaceFor(class, c.opts.Namespaces[0])
	watched, served := c.caches.spaces[ns]
	if !served {
		return nil, problem("NamespaceNotServed", "the class %s wants its config from the namespace %s, "+
			"which the dispatcher does not serve: add it to --config-namespaces", class.Name, ns)
	}
	found, err := watched.configs.ByIndex(byClass, config.ClassLabel(class.Name))
	switch {
	case err != nil:
		return nil, problem("WaitingForConfig", "find the config of the class %s: %v", class.Name, err)
	case len(found) == 0:
		return nil, problem("WaitingForConfig", "no provisioner config for the class %s: create a ConfigMap in the namespace %s "+
			"with the labels %s=%s and %s=%s", class.Name, ns, contract.LabelType, contract.TypeConfig, contract.LabelStorageClass, class.Name)
	case len(found) > 1:
		var names []string
		for _, obj := range found {
			names = append(names, obj.(*corev1.ConfigMap).Name)
		}
		slices.Sort(names) // in another order it would be another event
		return nil, problem("AmbiguousConfig", "the ConfigMaps %s in the namespace %s all claim the class %s: keep one",
			strings.Join(names, " and "), ns, class.Name)
	default:
		return found[0].(*corev1.ConfigMap), nil
	}
}

// read parses a source and checks what it needs of the cluster.
func (c *Controller) read(src config.Source) (config.Config, *decide.Problem) {
	cfg, faults := config.Parse(src, c.opts.Provisioner)
	if len(faults) == 0 {
		faults = jobs.Check(cfg, c.opts.Allowed)
	}
	if len(faults) > 0 {
		return cfg, problem("InvalidConfig", "the config %s/%s of the class %s: %s", src.Namespace, src.Name, src.Class, joined(faults))
	}
	watched, served := c.caches.spaces[src.Namespace]
	if !served {
		return cfg, problem("NamespaceNotServed", "the config %s/%s: add its namespace to --config-namespaces", src.Namespace, src.Name)
	}
	if cfg.ServiceAccount == "" {
		return cfg, nil // it writes no PV, and gets no token
	}
	if _, found, err := watched.accounts.GetByKey(src.Namespace + "/" + cfg.ServiceAccount); err != nil || !found {
		return cfg, problem("ServiceAccountRefused", "the config %s/%s names the ServiceAccount %s, which does not exist in that "+
			"namespace or lacks the label %s=true", src.Namespace, src.Name, cfg.ServiceAccount, contract.LabelProvisioner)
	}
	return cfg, nil
}

func joined(faults field.ErrorList) string {
	var out []string
	for _, f := range faults {
		out = append(out, f.Error())
	}
	return strings.Join(out, "; ")
}

// progresses: a Job that cannot start gives its slot to others.
func (c *Controller) progresses(job *batchv1.Job) bool {
	pods, err := c.caches.podsOf(job)
	now := c.clock.Now()
	if err != nil || runs.Ended(job, pods, now) {
		return false
	}
	trouble, _ := runs.StuckOf(job, pods, nil, now)
	return trouble == nil || !trouble.Unstarted
}

// unsupported refuses what no image can do.
func unsupported(claim *corev1.PersistentVolumeClaim) *decide.Problem {
	if claim.Spec.Selector == nil {
		return nil
	}
	return problem("SelectorNotSupported", "a claim with a selector chooses among PVs that exist: a new one cannot be made to match it")
}
