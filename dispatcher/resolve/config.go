package resolve

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// Resolver finds configs.
type Resolver struct {
	Caches *cluster.Caches
	config.Dispatcher

	// Namespace is where the config of a class is that names no other.
	Namespace string
	// Judged keeps what was found in config sources, nil for nothing. It is of one Provisioner and
	// of one Allowed.
	Judged *Judged
	// Allowed is what pods and PVs may use of a node, by namespace.
	Allowed jobs.Allowances
}

// Resolved is the config that serves a request, or the problem with it.
type Resolved struct {
	Target decide.Target
	Config config.Config
	Class  *storagev1.StorageClass
	Source *contract.Source
	// Node is where the selected node of a pending claim is, if the scheduler has selected one that
	// exists.
	Node NodeTopology
	// From is the class's ConfigMap, if it is known which one is used. Faulty is set if the problem
	// lies in it.
	From   *corev1.ConfigMap
	Faulty bool
	// Fallback says why the last valid revision is used in place of what the ConfigMaps of the
	// class say now, nil if they are used. Unused are these ConfigMaps.
	Fallback *decide.Problem
	Unused   []*corev1.ConfigMap
}

// Provision finds how a pending claim of a class would be provisioned now.
func (f *Resolver) Provision(ctx context.Context, reader cluster.Reader, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (r Resolved, err error) {
	r.Class = class
	if r.Target.Problem = f.dropped(claim, r.Class); r.Target.Problem != nil {
		return r, nil
	}
	if r.Target.Problem = unsupported(claim); r.Target.Problem != nil {
		return r, nil
	}
	if f.resolveConfig(&r); r.Target.Problem == nil {
		r.Target.Problem = cmp.Or(namespaceProblem(claim, r.From), cloneProblem(claim, r.Config), attributesProblem(claim, r.Config))
	}
	if r.Target.Problem != nil {
		return r, nil
	}
	// Only now: a user would create a source for a class that clones none.
	var problem *decide.Problem
	if r.Source, problem = f.resolveSource(ctx, claim); r.Source == nil && problem != nil {
		r.Target.Problem = problem
		return r, nil
	}
	request := jobs.Request(claim, r.Class, r.Config)
	request.Source = r.Source
	r.Target = decide.Target{
		Problem: problem, ConsentUnknown: problem != nil,
		Revision: r.Config.Source.Revision(), Hash: jobs.Hash(request, r.Config.RequestKeys), Node: selectedNode(claim, r.Class),
		RevisionStored: f.isCurrent(r.Config.Source),
		MaxAttempts:    r.Config.MaxAttempts, Supported: true,
		NodeSelected: WaitsForNode(r.Class), OnSelectedNode: r.Config.RunOn == config.RunOnSelected,
	}
	err = r.observeSelectedNode(ctx, reader)
	return r, err
}

// AtPresent returns the config that a class has now.
func (f *Resolver) AtPresent(class *storagev1.StorageClass) Resolved {
	r := Resolved{Class: class}
	f.resolveConfig(&r)
	return r
}

// resolveConfig parses the class's config. While that is faulty, or is not the only one with the
// class's label, the last valid revision is used.
func (f *Resolver) resolveConfig(r *Resolved) {
	switch found := f.configsFor(r); {
	case r.Target.Problem != nil:
		return
	case len(found) > 1:
		f.resolveLabelled(r, found)
	default:
		f.resolveOne(r, found[0])
	}
}

// resolveOne parses the class's one ConfigMap.
func (f *Resolver) resolveOne(r *Resolved, cm *corev1.ConfigMap) {
	judged := f.judgePresent(cm, r.Class)
	r.From, r.Config, r.Target.Problem = cm, judged.Config, f.problemWith(judged)
	if r.Target.Problem == nil {
		return
	}
	good, found := f.lastGood(judged.Source, r.From)
	if !found {
		r.Faulty = true
		return
	}
	r.fallBack(good, r.Target.Problem, cm)
	r.Target.Problem = nil
}

// resolveLabelled finds the last valid revision of several ConfigMaps that are labelled for a
// class. A generator names a ConfigMap anew with each edit, and whoever may write ConfigMaps beside
// it could otherwise stop the class.
func (f *Resolver) resolveLabelled(r *Resolved, found []*corev1.ConfigMap) {
	var names []string
	for _, cm := range found { // they are sorted: another order would be another event
		names = append(names, cm.Name)
	}
	p := decide.Problemf(reason.AmbiguousConfig, "the ConfigMaps %s in the namespace %s are all labelled for the class %s", strings.Join(names, " and "), found[0].Namespace, r.Class.Name).
		Remedyf("keep one")
	good, isGood := f.lastGood(config.SourceOf(found[0], r.Class), found...)
	if !isGood {
		r.Target.Problem = p
		return
	}
	r.From = found[slices.Index(names, good.Source.Name)]
	r.fallBack(good, p, found...)
}

// fallBack uses the last valid revision in place of ConfigMaps that have a problem.
func (r *Resolved) fallBack(good config.Config, why *decide.Problem, unused ...*corev1.ConfigMap) {
	r.Config, r.Unused = good, unused
	r.Fallback = decide.Problemf(why.Reason, "%s. Until then no change of the config is used for new volumes, and the last valid revision, %s, stays in use", why.Note, good.Source.Revision())
}

// Delete finds how a volume that was made, or may have been, would be deleted: under the revision
// that made it, even if its ConfigMap and its class no longer exist.
func (f *Resolver) Delete(uid types.UID, name string) Resolved {
	if name == "" {
		return Resolved{Target: decide.Target{Problem: decide.Problemf(reason.RevisionMissing, "the config that created the volume is unknown").
			Remedyf("name its ControllerRevision, as namespace/name, in the PV's annotation %s (kubectl get controllerrevisions -A -l %s=%s lists them): one that reaches the storage of this volume. Or set the PV's reclaim policy to "+
				"Retain, and delete the volume manually. If only a Job exists (kubectl get jobs -A -l %s%s), and it left nothing in the storage, annotate the Job with %s=%s",
				contract.AnnRevision, config.LabelManagedBy, config.ManagedBy, jobs.LabelMember, uid, jobs.AnnForget, uid)}}
	}
	if p := f.unserved(name); p != nil {
		return Resolved{Target: decide.Target{Problem: p}}
	}
	stored := f.Caches.Revisions.Named(name)
	if stored == nil {
		namespace, _, named := strings.Cut(name, "/")
		if !named { // it is no namespace that is served, and may be anything
			namespace = "NAMESPACE"
		}
		return Resolved{Target: decide.Target{Problem: decide.Problemf(reason.RevisionMissing, "the config revision %s that created the volume does not exist", quote.Name(name)).
			Remedyf("restore that ControllerRevision. Or name another, as namespace/name, in the PV's annotation %s: only one that reaches the storage of this volume. Or set the PV's reclaim policy to Retain, and delete the volume "+
				"manually. If there is no PersistentVolume, restore the revision, or give up the record: kubectl -n %s annotate --overwrite job JOB %s=%s, for each JOB of kubectl -n %s get jobs -l %s%s",
				contract.AnnRevision, namespace, jobs.AnnForget, uid, namespace, jobs.LabelMember, uid)}}
	}
	judged := f.JudgeStored(stored)
	if judged.Damaged != nil {
		return Resolved{Target: decide.Target{Problem: decide.Problemf(reason.RevisionDamaged, "the ControllerRevision %s: %v", name, judged.Damaged)}}
	}
	r := Resolved{Config: judged.Config}
	if r.Target.Problem = f.problemWith(judged); r.Target.Problem != nil {
		return r
	}
	r.Config = f.ScheduledAtPresent(r.Config)
	r.Target = decide.Target{Revision: name, RevisionStored: true, Supported: r.Config.Supports(contract.Delete)}
	return r
}

// DeleteAtPresent returns how a volume would be deleted under the present config of the class, in
// place of the revision that made it, if both reach the same storage. A script that could not run
// was once tried again for ever as it was, although the administrator had corrected it
// (TestADeleteThatFailsIsTriedUnderTheCorrectedConfig).
func (f *Resolver) DeleteAtPresent(made Resolved) (Resolved, bool) {
	present, found := f.presentOf(made.Config)
	if !found || !config.SameStorage(made.Config, present) || present.Source.Revision() == made.Config.Source.Revision() {
		return made, false
	}
	for _, verb := range made.Config.Verbs {
		if !present.Supports(verb) {
			return made, false
		}
	}
	r := Resolved{Config: present}
	r.Target = decide.Target{
		Revision: present.Source.Revision(), RevisionStored: true, Supported: present.Supports(contract.Delete),
	}
	return r, f.problemWith(Judgement{Source: present.Source, Config: present}) == nil
}

// ScheduledAtPresent returns the config of a revision with the scheduling that its class has now.
// Who lowers max-parallel spares a storage that old revisions use as well, and who raises a limit
// of memory, as the event of a run says that needed more, means these runs. Without one present
// config that can be read the revision's own holds.
func (f *Resolver) ScheduledAtPresent(old config.Config) config.Config {
	present, found := f.presentOf(old)
	if !found {
		return old
	}
	own, now := old.Scheduling, present.Scheduling
	same := maps.Equal(own.NodeSelector, now.NodeSelector) && equality.Semantic.DeepEqual(own.Affinity, now.Affinity)
	out := old.ScheduledAs(present)
	if same || f.keepsNodes(old, present) || !config.SameStorage(old, present) {
		return out
	}
	return out.OnNodesOf(present)
}

// keepsNodes reports whether the runs of an older revision go to its own nodes: as long as there
// are any. If only the present config is isolated they do not. A kubelet could give its node the
// label of the older selector, and get the storage's login, which the administrator has just taken
// from such nodes.
func (f *Resolver) keepsNodes(old, present config.Config) bool {
	return f.hasNodeFor(old.Scheduling) && (old.IsIsolated() || !present.IsIsolated())
}

// hasNodeFor reports whether any node has what a pod's node selector and affinity ask for.
func (f *Resolver) hasNodeFor(pod corev1.PodSpec) bool {
	need := nodeaffinity.NewRequiredNodeAffinity(pod.NodeSelector, pod.Affinity)
	return slices.ContainsFunc(f.Caches.Nodes.All(), func(node *corev1.Node) bool {
		matches, err := need.Match(node)
		return matches && err == nil
	})
}

// presentOf returns the present config of a revision's class, if there is one: the last valid
// revision of it if it has faults.
func (f *Resolver) presentOf(old config.Config) (config.Config, bool) {
	cm := f.presentFor(old.Source)
	if cm == nil {
		return config.Config{}, false
	}
	present := f.judgeMoved(cm, old.Source)
	if len(present.Faults) > 0 {
		return f.lastGood(present.Source, cm)
	}
	return present.Config, true
}

// problemWith returns the problem that a config source has, or that the cluster lacks what it
// needs.
func (f *Resolver) problemWith(j Judgement) *decide.Problem {
	src, account := j.Source, j.Config.ServiceAccount
	switch {
	case len(j.Faults) > 0:
		return decide.Problemf(reason.InvalidConfig, "the config %s/%s of the class %s: %s", src.Namespace, src.Name, src.Class, j.Said)
	case account == "": // its container writes no PV, and gets no token
		return nil
	case f.Caches.Accounts.Named(src.Namespace+"/"+account) == nil:
		return decide.Problemf(reason.ServiceAccountRefused, "the config %s/%s names the ServiceAccount %s, which does not exist in that "+
			"namespace or lacks the label %s=true", src.Namespace, src.Name, account, contract.LabelProvisioner).
			Remedyf("create it with that label, or add the label if its token is meant for provisioning containers")
	default:
		return nil
	}
}

// longestFaults is how much of all faults is reported, in bytes: more than an event has room for.
const longestFaults = 2 << 10

func joinFaults(faults field.ErrorList) string {
	var out []string
	for _, f := range faults {
		out = append(out, f.Error())
	}
	text := strings.Join(out, "; ")
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), longestFaults)], ""))
}

// IsLost reports whether Kubernetes takes a claim for one that was bound and has lost its volume:
// it names none, and has the PV controller's annotation, as claims from a backup have. Such a claim
// is never bound (syncClaim of pkg/controller/volume/persistentvolume/pv_controller.go). Its phase
// says nothing: it stays Lost until the claim is bound, also when the annotation has been removed.
func IsLost(claim *corev1.PersistentVolumeClaim) bool {
	_, wasBound := claim.Annotations[storagehelpers.AnnBindCompleted]
	return claim.Spec.VolumeName == "" && wasBound
}

// unsupported returns the problem with a claim that no image can provision.
func unsupported(claim *corev1.PersistentVolumeClaim) *decide.Problem {
	if IsLost(claim) {
		return decide.Problemf(reason.ClaimLost, "the claim has the annotation %s, and names no volume: Kubernetes takes it for one that has lost its volume, and never binds it. So none is "+
			"provisioned", storagehelpers.AnnBindCompleted).
			Remedyf("to get a new volume, kubectl -n %s annotate pvc %s %s-. To get an existing PersistentVolume, an administrator reserves that for the claim before: docs/operate.md#volumes-that-are-kept",
				claim.Namespace, claim.Name, storagehelpers.AnnBindCompleted)
	}
	if claim.Spec.Selector == nil {
		return nil
	}
	return decide.Problemf(reason.SelectorNotSupported, "a selector chooses among existing PersistentVolumes, so none is provisioned for the claim").Remedyf("delete the claim, and create it again without a selector")
}

// namespaceProblem returns the problem that the present ConfigMap of a class serves no claim of a
// namespace, also if another revision of it is in use. It names no other namespace: the claim's
// user reads it.
func namespaceProblem(claim *corev1.PersistentVolumeClaim, cm *corev1.ConfigMap) *decide.Problem {
	if config.Admits(cm, claim.Namespace) {
		return nil
	}
	return decide.Problemf(reason.NamespaceNotListed, "the config %s/%s serves only claims of the "+
		"namespaces that its key namespaces lists, and %s is not one of them",
		cm.Namespace, cm.Name, claim.Namespace).
		Remedyf("create the claim with another class. Or ask the administrator of the storage to add "+
			"%s to data.namespaces of the ConfigMap", claim.Namespace)
}

// WhyNotServed returns the reason of the event that the config serves no claims, or not one of this
// claim's namespace. It is empty if it does.
func (r Resolved) WhyNotServed(claim *corev1.PersistentVolumeClaim) string {
	p := r.Target.Problem
	if p == nil && r.From != nil {
		p = namespaceProblem(claim, r.From)
	}
	if p == nil {
		return ""
	}
	return p.Reason
}

// cloneProblem returns the problem that a claim is a clone, and a config does not say that its
// image can clone.
func cloneProblem(claim *corev1.PersistentVolumeClaim, cfg config.Config) *decide.Problem {
	if asked := cluster.CloneSource(claim); asked.IsSnapshot || asked.Name.Name == "" || cfg.Clones {
		return nil
	}
	return decide.Problemf(reason.DataSourceNotSupported, "the config %s/%s does not have data-sources: %s, so its image may not be able to clone a claim, "+
		"and could create an empty volume", cfg.Source.Namespace, cfg.Source.Name, contract.SourceClaim).
		Remedyf("if the image can clone, add that key to the ConfigMap, " +
			"and what the image itself asks for, as cinder-provisioner does for smartclone: \"true\"")
}

// attributesProblem returns the problem that the PV of a claim cannot have its
// VolumeAttributesClass.
func attributesProblem(claim *corev1.PersistentVolumeClaim, cfg config.Config) *decide.Problem {
	name := claim.Spec.VolumeAttributesClassName
	if name == nil || *name == "" || cfg.AttributesClasses {
		return nil
	}
	return decide.Problemf(reason.AttributesClassNotSupported, "the claim has the volumeAttributesClassName %s, but the config %s/%s does not have "+
		"volume-attributes-classes: true: Kubernetes accepts such a class only on PersistentVolumes with a csi source",
		*name, cfg.Source.Namespace, cfg.Source.Name).Remedyf("delete the claim, and create it again without that class")
}

// unserved returns the problem that the namespace of a config revision, "namespace/name", is not
// served, or nil.
func (f *Resolver) unserved(revision string) *decide.Problem {
	ns, _, named := strings.Cut(revision, "/")
	if why := f.Caches.WhyUnserved(ns); named && why != "" {
		return decide.Problemf(reason.NamespaceNotServed, "the config revision %s that created the volume is in the namespace %s: %s", quote.Name(revision), quote.Name(ns), why)
	}
	return nil
}

// IsRenewed reports whether a class is not older than a claim of it. The class may have been
// created anew, and then the claim may have been served from another namespace: a class's
// parameters never change.
func IsRenewed(class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim) bool {
	return !class.CreationTimestamp.Before(&claim.CreationTimestamp)
}

// dropped returns the problem that a claim may have Jobs in a namespace that was served before and
// is not served now, or nil.
func (f *Resolver) dropped(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *decide.Problem {
	dropped := f.Caches.Dropped()
	if len(dropped.Namespaces) == 0 || !IsRenewed(class, claim) {
		return nil
	}
	return decide.Problemf(reason.NamespaceNotServed, "the class %s is younger than the claim, which may have Jobs of an earlier class of that name in a namespace "+
		"that is no longer served: %s", class.Name, strings.Join(dropped.Namespaces, ", ")).
		Remedyf("add the namespace to --config-namespaces; if it has no such Job, remove the namespace from the annotation %s of the lease %s", config.AnnNamespaces, dropped.Lease)
}
