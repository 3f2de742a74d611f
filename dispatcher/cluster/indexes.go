package cluster

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Names of the indexes, of which each kind has some.
const (
	// ByUID finds the Jobs and pods that serve a claim, and the claims in the bucketOf a UID.
	ByUID = "uid"
	// ByClass finds the objects of a class by its label, ConfigMaps and revisions too.
	ByClass = "class"
	// ByJob finds the pods of a Job by its name.
	ByJob = "job"
	// ByConfig finds a config's revisions, and the classes that name a config, both by the name of the
	// ConfigMap.
	ByConfig = "config"
	// ByUnfinished finds a class's Jobs and pods that may not have ended, by the class's label.
	ByUnfinished = "unfinished"
	// ByHistory finds the failed Jobs that are kept for people to look at, by the class's label.
	ByHistory = "kept"
	// ByStart finds the Jobs that have not finished by their config revision and the nodes that they go
	// to.
	ByStart = "start"
	// BySourcePV finds what clones the volume of a PV: Jobs by the PV's name, pods by its
	// jobs.SourceKey.
	BySourcePV = "source-pv"
	// ByRevision finds the Jobs and PVs that name a config revision.
	ByRevision = "revision"
	// ByOwner finds the PVs that carry a claim's UID, or name the claim by it, but for the one that
	// is named after it.
	ByOwner = "owner"
	// ByVolumeSource finds the PVs in the bucketOf a volume source.
	ByVolumeSource = "volume-source"
	// ByNode finds what may wait for a node, by the node's name or hostname label: claims that are
	// not bound, PVs with a claim's UID, Jobs that are records. Nodes are found by both names.
	ByNode = "node"
	// ByVolume finds released PVs by the key of the name that a node has for their volume.
	ByVolume = "volume"
	// ByPV finds VolumeAttachments by the PV.
	ByPV = "pv"
	// ByUnclaimed finds the PVs that name no claim by its UID, by their claimants.
	ByUnclaimed = "unclaimed"
	// ByTrash finds the PVs whose volumes may wait for their delete, by pvs.TrashOfClass and
	// pvs.TrashOf.
	ByTrash = "trash"
	// BySource finds the unbound claims that ask for a clone of a claim.
	BySource = "source"
)

// The indexes of each kind.
var (
	claimIndexers      = cache.Indexers{ByUID: uidOf, ByClass: classOfClaim, BySource: sourceOfClaim, ByNode: nodeOfClaim}
	pvIndexers         = cache.Indexers{ByClass: classOfPV, ByRevision: revisionNamed, ByOwner: ownersOfPV, ByNode: nodeOfPV, ByVolumeSource: volumeSourceOfPV, ByVolume: volumeOfPV, ByUnclaimed: claimantsOfPV, ByTrash: trashOfPV}
	classIndexers      = cache.Indexers{ByConfig: configOfClass}
	nodeIndexers       = cache.Indexers{ByNode: namesOfNode}
	attachmentIndexers = cache.Indexers{ByPV: pvOfAttachment}
	configIndexers     = cache.Indexers{ByClass: classOfConfig}
	revisionIndexers   = cache.Indexers{ByConfig: configOfRevision, ByClass: classOfRevision}
	jobIndexers        = cache.Indexers{ByUID: uidsOfJob, ByClass: classByLabel, ByUnfinished: classOfUnfinished, ByStart: startOfUnfinished, ByRevision: revisionNamed, ByNode: nodeOfJob, ByHistory: classOfHistory, BySourcePV: sourcesOfJob}
	podIndexers        = cache.Indexers{ByJob: jobOfPod, ByUID: uidsOfPod, ByUnfinished: classOfRunningPod, BySourcePV: sourcesOfPod}
)

// buckets is how many keys an index has at most of which each object has another. A set of one name
// needs 250 bytes, and each of a set of six 45.
const buckets = 1 << 14

// bucketOf returns the key under which an index has the objects with a text, among others.
func bucketOf(text string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text))
	return strconv.FormatUint(uint64(h.Sum32()%buckets), 32)
}

func uidOf(obj any) ([]string, error) {
	return []string{bucketOf(string(obj.(named).GetUID()))}, nil
}

func sourceOfClaim(obj any) ([]string, error) {
	claim := cut.Whole(obj).(*corev1.PersistentVolumeClaim)
	source := CloneSource(claim)
	if source.Name.Name == "" || claim.Spec.VolumeName != "" {
		return nil, nil
	}
	return []string{source.Name.String()}, nil
}

// classOfClaim, like all indexes by class, has the class's label as its key. A Job carries no other
// name of the class.
func classOfClaim(obj any) ([]string, error) {
	return []string{config.ClassLabel(storagehelpers.GetPersistentVolumeClaimClass(cut.Whole(obj).(*corev1.PersistentVolumeClaim)))}, nil
}

func classOfPV(obj any) ([]string, error) {
	return []string{config.ClassLabel(cut.Whole(obj).(*corev1.PersistentVolume).Spec.StorageClassName)}, nil
}

func configOfClass(obj any) ([]string, error) {
	if name := config.NameFor(obj.(*storagev1.StorageClass)); name != "" {
		return []string{name}, nil
	}
	return nil, nil
}

// classOfConfig has no key for a ConfigMap without the label, which only serves classes that name
// it.
func classOfConfig(obj any) ([]string, error) {
	if class := obj.(*corev1.ConfigMap).Labels[contract.LabelStorageClass]; class != "" {
		return []string{config.ClassLabel(class)}, nil
	}
	return nil, nil
}

func classOfRevision(obj any) ([]string, error) {
	return []string{ClassOfRevision(obj.(*appsv1.ControllerRevision))}, nil
}

// ClassOfRevision returns the label of the class whose config a revision holds. The revision's own
// label says the same, and counts only if the content cannot be decoded. Otherwise a revision
// without the label would have no place among the others of its class, and be stored again and
// again.
func ClassOfRevision(stored *appsv1.ControllerRevision) string {
	src, err := config.StoredSource(stored)
	if err != nil {
		return stored.Labels[config.LabelClass]
	}
	return config.ClassLabel(src.Class)
}

func classByLabel(obj any) ([]string, error) {
	return []string{obj.(metav1.Object).GetLabels()[config.LabelClass]}, nil
}

func classOfUnfinished(obj any) ([]string, error) {
	if runs.HasReportedEnd(obj.(*batchv1.Job)) {
		return nil, nil
	}
	return classByLabel(obj)
}

func classOfHistory(obj any) ([]string, error) {
	if !runs.IsHistory(obj.(*batchv1.Job)) {
		return nil, nil
	}
	return classByLabel(obj)
}

// classOfRunningPod has no key for a pod that serves no claim: a mirror pod of a kubelet may bear
// the class's label.
func classOfRunningPod(obj any) ([]string, error) {
	pod := obj.(*corev1.Pod)
	if runs.IsOver(pod) || jobs.UIDsOfPod(pod) == nil {
		return nil, nil
	}
	return []string{pod.Labels[config.LabelClass]}, nil
}

func startOfUnfinished(obj any) ([]string, error) {
	job := obj.(*batchv1.Job)
	if runs.IsFinished(job) {
		return nil, nil
	}
	return []string{startKey(job.Annotations[contract.AnnRevision], jobs.HeadOf(job).Nodes)}, nil
}

func startKey(revision, nodes string) string { return revision + " " + nodes }

func sourcesOfJob(obj any) ([]string, error) {
	if job := obj.(*batchv1.Job); !runs.HasReportedEnd(job) || runs.IsNewerRecord(job) {
		return jobs.SourcesOf(job), nil
	}
	return nil, nil
}

func sourcesOfPod(obj any) ([]string, error) {
	return jobs.SourcesOfPod(obj.(*corev1.Pod)), nil
}

func configOfRevision(obj any) ([]string, error) {
	return []string{config.NameOfRevision(obj.(*appsv1.ControllerRevision).Name)}, nil
}

// revisionNamed indexes Jobs and PVs, which name a revision by the same annotation.
func revisionNamed(obj any) ([]string, error) {
	return []string{cut.Whole(obj).(metav1.Object).GetAnnotations()[contract.AnnRevision]}, nil
}

func uidsOfJob(obj any) ([]string, error) {
	return jobs.UIDs(obj.(*batchv1.Job)), nil
}

func jobOfPod(obj any) ([]string, error) {
	return []string{obj.(*corev1.Pod).Labels[batchv1.JobNameLabel]}, nil
}

func uidsOfPod(obj any) ([]string, error) {
	return jobs.UIDsOfPod(obj.(*corev1.Pod)), nil
}

// ownersOfPV has not the UID after which a PV is named: that finds the PV by its name.
func ownersOfPV(obj any) ([]string, error) {
	pv := cut.Whole(obj).(*corev1.PersistentVolume)
	return slices.DeleteFunc(pvs.Owners(pv), func(uid string) bool { return pv.Name == contract.PVName(uid) }), nil
}

func volumeSourceOfPV(obj any) ([]string, error) {
	if key := cut.SourceKey(obj); key != "" {
		return []string{bucketOf(key)}, nil
	}
	return nil, nil
}

func claimantsOfPV(obj any) ([]string, error) {
	return pvs.Claimants(cut.Whole(obj).(*corev1.PersistentVolume)), nil
}

func trashOfPV(obj any) ([]string, error) {
	pv := cut.Whole(obj).(*corev1.PersistentVolume)
	if !pvs.IsTrash(pv) {
		return nil, nil
	}
	return []string{pvs.TrashOfClass(pv.Spec.StorageClassName), pvs.TrashOf(pv)}, nil
}

func namesOfNode(obj any) ([]string, error) {
	return NamesOf(obj.(*corev1.Node)), nil
}

// NamesOf returns the names by which claims and PVs refer to a node: its own name and its hostname
// label. Mostly they are the same.
func NamesOf(node *corev1.Node) []string {
	names := []string{node.Name}
	if host := node.Labels[corev1.LabelHostname]; host != "" && host != node.Name {
		names = append(names, host)
	}
	return names
}

func nodeOfClaim(obj any) ([]string, error) {
	claim := cut.Whole(obj).(*corev1.PersistentVolumeClaim)
	if node := claim.Annotations[storagehelpers.AnnSelectedNode]; node != "" && claim.Spec.VolumeName == "" {
		return []string{node}, nil
	}
	return nil, nil
}

// nodeOfPV has an empty key for a released PV that names no single node, since it may wait for any
// of several.
func nodeOfPV(obj any) ([]string, error) {
	pv := cut.Whole(obj).(*corev1.PersistentVolume)
	node := pvs.NodeOf(pv)
	if pv.Annotations[contract.AnnClaimUID] == "" || pvs.NodesOf(pv) == nil || node == "" && !pvs.IsReleased(pv) {
		return nil, nil
	}
	return []string{node}, nil
}

func nodeOfJob(obj any) ([]string, error) {
	job := obj.(*batchv1.Job)
	if !runs.IsRecord(job) {
		return nil, nil
	}
	var nodes []string
	for _, record := range jobs.Records(job) {
		if node := record.Node; node != "" && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

// Kinds of data sources that no populator fills.
const (
	kindClaim    = contract.SourceClaim
	kindSnapshot = "VolumeSnapshot"
)

// Source is what a claim asks its volume to be cloned from. Name is empty if it asks for no clone.
type Source struct {
	Name       types.NamespacedName
	IsSnapshot bool
}

// CloneSource returns which claim a claim asks to be cloned, by its data source or by the
// annotation of the older provisioner.
func CloneSource(claim *corev1.PersistentVolumeClaim) Source {
	kind, name := "", types.NamespacedName{Namespace: claim.Namespace}
	switch {
	case claim.Spec.DataSourceRef != nil:
		kind, name.Name = claim.Spec.DataSourceRef.Kind, claim.Spec.DataSourceRef.Name
		if ns := claim.Spec.DataSourceRef.Namespace; ns != nil && *ns != "" {
			name.Namespace = *ns
		}
	case claim.Spec.DataSource != nil:
		kind, name.Name = claim.Spec.DataSource.Kind, claim.Spec.DataSource.Name
	}
	if asked := claim.Annotations[contract.AnnCloneRequest]; kind == "" && asked != "" {
		name.Name = asked
		if ns, rest, found := strings.Cut(asked, "/"); found {
			name.Namespace, name.Name = ns, rest
		}
	}
	return Source{Name: name, IsSnapshot: kind == kindSnapshot}
}

// IsPopulated reports whether a volume populator fills a claim, by way of another claim.
func IsPopulated(claim *corev1.PersistentVolumeClaim) bool {
	ref := claim.Spec.DataSourceRef
	return ref != nil && ref.Kind != kindClaim && ref.Kind != kindSnapshot
}
