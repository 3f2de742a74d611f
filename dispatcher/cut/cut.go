package cut

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Users write claims. 2,000 of them with 250 KiB of annotations once filled the memory of all replicas.

// maxName is the longest annotation that is kept as it is, in bytes. The names of nodes, classes and claims are shorter.
const maxName = 512

// maxUser is the longest text of a claim's creator or its groups that is kept.
const maxUser = 16 << 10

// readOfBound are the annotations that are read on a claim that is bound.
var readOfBound = []string{
	contract.AnnProvisionTS, contract.AnnAttempts, contract.AnnResult, contract.AnnExitCode, contract.AnnMessage, contract.AnnClaimCloneOf,
	corev1.BetaStorageClassAnnotation,
}

// readOfUnbound are the annotations that are read only on a claim that is not bound. The last says that some were not kept before.
var readOfUnbound = []string{
	storagehelpers.AnnStorageProvisioner, storagehelpers.AnnBetaStorageProvisioner, storagehelpers.AnnSelectedNode, contract.AnnCloneRequest, jobs.CutMark,
}

// Abridge returns a text as it is kept of an annotation that is only compared: a long one as its hash.
func Abridge(text string) string {
	if len(text) <= maxName {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Object returns what the dispatcher reads of an object. It is a new object if anything was cut. Cutting it again changes nothing.
func Object(obj any) any {
	switch o := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		return Claim(o)
	case *corev1.PersistentVolume:
		return PV(o)
	case *corev1.Pod:
		return Pod(o)
	case *batchv1.Job:
		return cutJob(o)
	case *corev1.Node:
		return Node(o)
	case *storagev1.VolumeAttachment:
		return cutAttachment(o)
	}
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj
}

// Transform is the transform of every informer.
func Transform(obj any) (any, error) { return Object(obj), nil }

// Claim keeps what a launch, a resize and a metric need of a claim.
func Claim(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	out := &corev1.PersistentVolumeClaim{ObjectMeta: cutMeta(&claim.ObjectMeta), Spec: claim.Spec, Status: cutClaimStatus(claim.Status)}
	out.Namespace, out.Finalizers = shareText(claim.Namespace), shareAll(&finalizers, claim.Finalizers)
	out.Spec.AccessModes = shareAll(&modes, claim.Spec.AccessModes)
	out.Spec.Resources = corev1.VolumeResourceRequirements{Requests: shareSize(claim.Spec.Resources.Requests)}
	if claim.Spec.Selector != nil {
		out.Spec.Selector = &metav1.LabelSelector{}
	}
	if claim.Spec.DataSource != nil && claim.Spec.DataSourceRef != nil {
		out.Spec.DataSource = nil // it says the same
	}
	text := claimText{claim: claim, annotations: map[string]string{}}
	text.keepRead(readOfBound)
	if claim.Spec.VolumeName == "" {
		text.keepRead(readOfUnbound)
		text.keepOthers()
		text.keepUser()
	}
	out.Labels, out.Annotations = text.labels, text.annotations
	return out
}

// cutMeta returns metadata without labels, annotations, owners and managed fields.
func cutMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp, DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds, Finalizers: m.Finalizers,
	}
}

func cutClaimStatus(s corev1.PersistentVolumeClaimStatus) corev1.PersistentVolumeClaimStatus {
	return corev1.PersistentVolumeClaimStatus{
		Phase: s.Phase, Capacity: shareSize(s.Capacity), Conditions: s.Conditions,
		AllocatedResources: shareSize(s.AllocatedResources), AllocatedResourceStatuses: onlyStorage(s.AllocatedResourceStatuses),
	}
}

// onlyStorage returns the entry of a map that is about storage. A map that has no other is returned as it is.
func onlyStorage[M ~map[corev1.ResourceName]V, V any](all M) M {
	size, found := all[corev1.ResourceStorage]
	if len(all) == 0 || len(all) == 1 && found {
		return all
	}
	if !found {
		return nil
	}
	return M{corev1.ResourceStorage: size}
}

// claimText collects the labels and annotations that are kept of a claim.
type claimText struct {
	claim               *corev1.PersistentVolumeClaim
	labels, annotations map[string]string
}

// keepRead keeps annotations with these keys.
func (t *claimText) keepRead(keys []string) {
	for _, key := range keys {
		if value, found := t.claim.Annotations[key]; found {
			t.annotations[key] = Abridge(value)
		}
	}
}

// keepUser keeps who created the claim. What is cut of that would name another user, so it is kept as a whole or not at all.
func (t *claimText) keepUser() {
	user, hasUser := t.claim.Annotations[jobs.AnnUsername]
	groups, hasGroups := t.claim.Annotations[jobs.AnnGroups]
	if hasUser && len(user)+len(groups) <= maxUser {
		t.annotations[jobs.AnnUsername] = user
	}
	if hasGroups && len(user)+len(groups) <= maxUser {
		t.annotations[jobs.AnnGroups] = groups
	}
}

// entry is a label or an annotation.
type entry struct {
	key, value       string
	isLabel, carried bool
}

// keepOthers keeps the labels and annotations that a request carries, all of them or none, and as many of the others as there is room for: the
// request-keys of a config may name them. The smallest come first, so that a large one that is added later takes the place of none.
func (t *claimText) keepOthers() {
	_, wasCut := t.claim.Annotations[jobs.CutMark]
	fits := !wasCut && jobs.FitsRequest(t.claim.Labels, t.claim.Annotations)
	if !fits {
		t.annotations[jobs.CutMark] = "true"
	}
	room := jobs.MaxClaimText
	for _, e := range t.others(fits) {
		if room -= len(e.key) + len(e.value); room < 0 {
			return
		}
		if !e.isLabel {
			t.annotations[e.key] = e.value
			continue
		}
		if t.labels == nil {
			t.labels = map[string]string{}
		}
		t.labels[e.key] = e.value
	}
}

// others returns the labels, and the annotations that are not the dispatcher's or of Kubernetes' controllers, in the order in which they are kept.
func (t *claimText) others(fits bool) []entry {
	var out []entry
	for key, value := range t.claim.Labels {
		out = append(out, entry{key, value, true, fits})
	}
	for key, value := range t.claim.Annotations {
		if carried := jobs.IsCarried(key); carried || !isOfControllers(key) {
			out = append(out, entry{key, value, false, fits && carried})
		}
	}
	slices.SortFunc(out, func(a, b entry) int {
		return cmp.Or(compareBool(b.carried, a.carried), cmp.Compare(len(a.key)+len(a.value), len(b.key)+len(b.value)),
			cmp.Compare(a.key, b.key), compareBool(a.isLabel, b.isLabel))
	})
	return out
}

// isOfControllers reports whether no config's request-keys can name an annotation: the dispatcher and Kubernetes' controllers write it.
func isOfControllers(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasPrefix(key, contract.Domain) || slices.Contains([]string{"volume.kubernetes.io", "volume.beta.kubernetes.io", "pv.kubernetes.io"}, domain)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
