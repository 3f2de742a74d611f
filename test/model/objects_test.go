package model

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

const (
	uid       = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50"
	otherUID  = "11111111-2d4a-4c8e-9a57-0b1c2d3e4f50"
	namespace = "flex-provisioner"
	class     = "gold"
)

// now is the time in every state. A retry is always due, and a Job is older than the moments that
// stuck waits for.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

const (
	small = "1Gi"
	large = "2Gi"
)

func sizeOf(isLarge bool) corev1.ResourceList {
	text := small
	if isLarge {
		text = large
	}
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(text)}
}

func (w *world) class() *storagev1.StorageClass {
	policy, mode := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	if w.retain {
		policy = corev1.PersistentVolumeReclaimRetain
	}
	if w.selects {
		mode = storagev1.VolumeBindingWaitForFirstConsumer
	}
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: contract.ProvisionerName,
		ReclaimPolicy: &policy, VolumeBindingMode: &mode, AllowVolumeExpansion: new(true),
	}
}

// configMap returns a version of the class's config.
func (w *world) configMap(version uint8) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: class,
			Labels: map[string]string{contract.LabelType: contract.TypeConfig, contract.LabelStorageClass: class},
		},
		Data: map[string]string{"image": fmt.Sprintf("localhost/gold:v%d", version), "verbs": w.verbs, "service-account-name": "gold"},
	}
	if w.acts&clones != 0 {
		cm.Data["data-sources"] = contract.SourceClaim
	}
	if w.offers {
		delete(cm.Data, "service-account-name")
		cm.Data["write-pv"] = "dispatcher"
	}
	if w.selects {
		cm.Data["run-on"] = "selected-node"
	}
	if w.forgets {
		cm.Data["node-gone"] = "forget"
	}
	if w.keeps {
		cm.Data["keep-deleted"], cm.Data["keep-deleted-limit"] = "1h", large
	}
	return cm
}

// config returns a version of the class's config, parsed.
func (w *world) config(version uint8) config.Config {
	if cfg, parsed := w.configs[version]; parsed {
		return cfg
	}
	cfg, faults := config.Parse(config.SourceOf(w.configMap(version), w.class()), config.Dispatcher{Provisioner: contract.ProvisionerName})
	if len(faults) > 0 {
		panic(faults.ToAggregate())
	}
	w.configs[version] = cfg
	return cfg
}

// revision returns the stored revision of a version of the config.
func (w *world) revision(version uint8) *appsv1.ControllerRevision {
	src := w.config(version).Source
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: src.RevisionName()},
		Data:       runtime.RawExtension{Raw: src.Encode()}, Revision: int64(version) + 1,
	}
}

// fixed returns the objects that no state changes, but for a node that may be lost.
func (w *world) fixed(lost bool) []metav1.Object {
	out := []metav1.Object{w.class(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "gold", Labels: map[string]string{contract.LabelProvisioner: "true"},
	}}}
	for n := range uint8(2) {
		if lost && n == 0 {
			continue
		}
		name := nodeName(n + 1)
		out = append(out, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}})
	}
	return out
}

func nodeName(n uint8) string {
	if n == 0 {
		return ""
	}
	return "node-" + strconv.Itoa(int(n))
}

// claimFor returns the claim as it asks, unbound.
func claimFor(request, node, source uint8) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "app", Name: "data", UID: uid, ResourceVersion: "2", CreationTimestamp: ago(time.Hour),
			Labels:      map[string]string{"version": strconv.Itoa(int(request))},
			Annotations: map[string]string{storagehelpers.AnnStorageProvisioner: contract.ProvisionerName, storagehelpers.AnnBetaStorageProvisioner: contract.ProvisionerName},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(class), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: sizeOf(false)},
		},
	}
	if source != 0 {
		claim.Annotations[contract.AnnCloneRequest] = "app/source"
	}
	if node != 0 {
		claim.Annotations[storagehelpers.AnnSelectedNode] = nodeName(node)
	}
	return claim
}

func (w *world) claim(s *state) *corev1.PersistentVolumeClaim {
	claim := claimFor(s.request, s.node, s.source)
	if s.unasked {
		delete(claim.Annotations, storagehelpers.AnnStorageProvisioner)
		delete(claim.Annotations, storagehelpers.AnnBetaStorageProvisioner)
	}
	maps.Copy(claim.Annotations, w.publishedBy(s))
	claim.Spec.Resources.Requests = sizeOf(s.size.asked)
	switch s.claim {
	case claimBound:
		claim.Spec.VolumeName = contract.PVName(uid)
	case claimElsewhere:
		claim.Spec.VolumeName = "rescued"
	case claimStatic:
		claim.Spec.VolumeName = "static"
	case claimGone, claimPending:
		return claim
	}
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, sizeOf(s.size.has)
	w.resizing(s, claim)
	return claim
}

func (w *world) resizing(s *state, claim *corev1.PersistentVolumeClaim) {
	stage := corev1.PersistentVolumeClaimControllerResizeInProgress
	switch {
	case s.size.infeasible:
		stage = corev1.PersistentVolumeClaimControllerResizeInfeasible
	case !s.size.resizing:
		return
	}
	claim.Status.AllocatedResources = sizeOf(true)
	claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: stage}
}

// otherClaim returns the claim to which the UID's PV was handed on.
func otherClaim() *corev1.PersistentVolumeClaim {
	claim := claimFor(0, 0, 0)
	claim.Name, claim.UID = "other", otherUID
	claim.Spec.VolumeName, claim.Status.Phase, claim.Status.Capacity = contract.PVName(uid), corev1.ClaimBound, sizeOf(false)
	return claim
}

func (w *world) pv(v volume) *corev1.PersistentVolume {
	pv := w.skeleton(0, 0, v.rev)
	pv.UID, pv.ResourceVersion, pv.CreationTimestamp = genUID(v.gen), "7", ago(24*time.Hour)
	pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: "/gold"}
	pv.Spec.Capacity = sizeOf(v.grown)
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	if v.retain {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	if v.node != 0 {
		need := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{nodeName(v.node)}}
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{need}}},
		}}
	}
	pv.Finalizers = nil
	if v.finalizer {
		pv.Finalizers = []string{contract.FinalizerStorage}
	}
	if v.misfit {
		pv.Spec.AccessModes = nil
	}
	if v.bare {
		pv.Annotations, pv.Labels = nil, nil
	}
	if v.terminating {
		pv.DeletionTimestamp = new(ago(time.Minute))
	}
	switch v.ref {
	case refOwn:
	case refNone:
		pv.Spec.ClaimRef = nil
	case refOther:
		pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "other", otherUID
	case refName:
		pv.Spec.ClaimRef.UID = ""
	case refTaken:
		pv.Spec.ClaimRef.UID = pvs.NoClaim
	case refReserved:
		pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "other", ""
	case refOtherGone:
		pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "gone", otherUID
	}
	since := ago(2 * time.Hour)
	if v.kept {
		since = ago(time.Minute)
	}
	pv.Status.Phase, pv.Status.LastPhaseTransitionTime = phaseOf(v.phase), &since
	switch v.emptied {
	case notEmptied:
	case emptiedNow:
		pv.Annotations[pvs.AnnEmpty] = pvs.ReleasedSince(pv)
	case emptiedBefore:
		pv.Annotations[pvs.AnnEmpty] = ago(12 * time.Hour).UTC().Format(time.RFC3339)
	}
	return pv
}

// pvBeside returns the PV of another claim that was deleted later.
func (w *world) pvBeside(is beside) *corev1.PersistentVolume {
	const id = "44444444-2d4a-4c8e-9a57-0b1c2d3e4f50"
	pv := w.pv(volume{phase: released, finalizer: true, grown: true})
	pv.Name, pv.UID, pv.Spec.NFS.Path = contract.PVName(id), "pv-"+id, "/newer"
	pv.Annotations[contract.AnnClaimUID] = id
	pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = "newer", id
	pv.Status.LastPhaseTransitionTime = new(ago(time.Second))
	if is == madeBeside {
		pv.CreationTimestamp = ago(time.Second)
	}
	return pv
}

func phaseOf(p phase) corev1.PersistentVolumePhase {
	return []corev1.PersistentVolumePhase{"", corev1.VolumeAvailable, corev1.VolumeBound, corev1.VolumeReleased}[p]
}

func genUID(gen uint8) types.UID {
	if gen == 0 {
		return ""
	}
	return types.UID("0d4c9a52-77a1-4f0e-8f4e-00000000000" + strconv.Itoa(int(gen)))
}

// rescuedPV returns a PV that an administrator has written for the UID's volume, without any mark
// of ours.
func rescuedPVOf(r rescued) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "rescued", UID: "22222222-77a1-4f0e-8f4e-1b2c3d4e5f60", ResourceVersion: "9", CreationTimestamp: ago(time.Minute)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class, Capacity: sizeOf(false), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: "app", Name: "data", UID: uid},
		},
	}
	pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: "/gold"}
	pv.Status.Phase = phaseOf(r.phase)
	return pv
}

// staticPV returns an old PV that fits the claim.
func staticPV(p phase) *corev1.PersistentVolume {
	pv := rescuedPVOf(rescued{p})
	pv.Name, pv.UID, pv.CreationTimestamp = "static", "33333333-77a1-4f0e-8f4e-1b2c3d4e5f60", ago(24*time.Hour)
	pv.Spec.NFS.Path = "/static"
	if p == unbound {
		pv.Spec.ClaimRef = nil
	}
	return pv
}

// skeleton returns the PV that a provision run is asked to write.
func (w *world) skeleton(request, node, rev uint8) *corev1.PersistentVolume {
	cfg := w.config(rev)
	return pvs.Skeleton(w.request(request, node, rev, 0), cfg, contract.ProvisionerName)
}
