//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
)

// untilCollected is how soon the garbage collector acts on an owner that does not exist, which it
// asks the API server for.
const untilCollected = time.Minute

// annStorageProvisioner is how the PV controller says whose a claim is.
const annStorageProvisioner = "volume.kubernetes.io/storage-provisioner"

// try is one request of an attack.
type try = func(context.Context, kubernetes.Interface) error

// sequence sends requests that are stored, one after the other, as an attacker does who goes on
// after a refusal. It reports an error, with every refusal in it, unless the aim is reached.
func sequence(aim func(context.Context) error, requests ...try) try {
	return func(ctx context.Context, client kubernetes.Interface) error {
		var refused []error
		for _, request := range requests {
			if err := request(ctx, client); err != nil {
				refused = append(refused, err)
			}
		}
		wait := untilCollected
		if len(refused) == len(requests) {
			wait = time.Second
		}
		if err := poll(ctx, wait, aim); err != nil {
			return errors.Join(append(refused, err)...)
		}
		return nil
	}
}

func patchPV(name, change string) try {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, []byte(change), metav1.PatchOptions{})
		return err
	}
}

func deletePV(name string) try {
	return func(ctx context.Context, client kubernetes.Interface) error {
		return client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func patchClaim(claim *corev1.PersistentVolumeClaim, change string, subresource ...string) try {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().PersistentVolumeClaims(claim.Namespace).
			Patch(ctx, claim.Name, types.MergePatchType, []byte(change), metav1.PatchOptions{}, subresource...)
		return err
	}
}

func pvWasDeleted(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		return stays(err, "the PersistentVolume "+name)
	}
}

func claimWasDeleted(claim *corev1.PersistentVolumeClaim) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := kube.CoreV1().PersistentVolumeClaims(claim.Namespace).Get(ctx, claim.Name, metav1.GetOptions{})
		return stays(err, "the claim "+claim.Name)
	}
}

// stays returns an error unless a GET has found nothing.
func stays(err error, what string) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return errors.New(what + " stays")
	}
}

// madePV makes a PV as an administrator, and deletes it at the end whatever finalizers it has by
// then.
func (w *world) madePV(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	w.t.Helper()
	made, err := kube.CoreV1().PersistentVolumes().Create(w.ctx(), pv, metav1.CreateOptions{})
	w.must(err, "create the PV "+pv.Name)
	w.whenDone(func() {
		w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv.Name, metav1.DeleteOptions{}), "the PV "+pv.Name)
		w.gone(patchPV(pv.Name, `{"metadata":{"finalizers":null}}`)(w.ctx(), kube), "the PV "+pv.Name)
	})
	return made
}

// foreignPV makes a PV of an administrator, of any name, or of another driver, which names it after
// its claim as well.
func (w *world) foreignPV(name string) string {
	w.t.Helper()
	pv := attackPV(name, "", w.ns+"-foreign", anExport())
	pv.Annotations, pv.Spec.ClaimRef = nil, nil
	return w.madePV(pv).Name
}

// ownPV makes a PV of ours and its claim, and waits until they are bound. It is of no dispatcher
// that runs.
func (w *world) ownPV(class, name string, policy corev1.PersistentVolumeReclaimPolicy) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	claim := w.claim(class, name)
	pv := attackPV("pvc-"+string(claim.UID), string(claim.UID), class, anExport(), reclaimed(policy), finalizedBy("flex-provisioner.io/storage"),
		annotatedPV("pv.kubernetes.io/provisioned-by", "attacked.e2e.example.com"), annotatedPV("flex-provisioner.io/config-revision", ownNamespace+"/a-0"))
	pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name = claim.Namespace, claim.Name
	w.madePV(pv)
	w.eventually(toBind, "the PV "+pv.Name+" to be bound", func(ctx context.Context) error {
		var err error
		if pv, err = kube.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		if claim, err = lookClaim(ctx, claim); err == nil && (pv.Status.Phase != corev1.VolumeBound || claim.Status.Phase != corev1.ClaimBound) {
			err = fmt.Errorf("it is %s, its claim %s", pv.Status.Phase, claim.Status.Phase)
		}
		return err
	})
	return pv, claim
}

// A stolen token of the dispatcher neither deletes nor changes what is not of this project, nor
// what is in use, whatever it writes first, and lets no other client delete it. What the dispatcher
// needs passes.
func TestDispatchersTokenReachesNoOthersPVsAndClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sequences")
	w.run(w.sequenceAttacks(), true)
}

// sequenceAttacks makes the victims, each for one attack, and returns the attacks. Their requests
// are stored.
func (w *world) sequenceAttacks() []attack {
	w.t.Helper()
	w.class(w.ns, w.oursAlone)
	w.class(w.ns + "-ours")
	return append(w.pvSequences(), w.claimSequences()...)
}

func (w *world) pvSequences() []attack {
	w.t.Helper()
	const foreign, nothing, deletes = "changes only PersistentVolumes of its own", "may change only its own finalizer", "deletes only PersistentVolumes of its own"
	marked, uid := w.foreignPV(w.ns+"-marked"), string(uuid.NewUUID())
	sameName, finalized, owned := w.foreignPV("pvc-"+uid), w.foreignPV(w.ns+"-finalized"), w.foreignPV(w.ns+"-owned")
	kept, _ := w.ownPV(w.ns, "kept", corev1.PersistentVolumeReclaimRetain)
	used, _ := w.ownPV(w.ns, "used", corev1.PersistentVolumeReclaimDelete)
	handed, _ := w.ownPV(w.ns, "handed", corev1.PersistentVolumeReclaimDelete)
	written, _ := w.ownPV(w.ns, "written", corev1.PersistentVolumeReclaimDelete)
	revised := func(ctx context.Context) error {
		return w.pvHas(ctx, written.Name, "flex-provisioner.io/config-revision", "a/b")
	}
	const noFinalizers, none = `{"metadata":{"finalizers":null}}`, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"none","uid":"` + attackUID + `"}]}}`
	return []attack{
		{"delete a PV of an administrator", theDispatcher, sequence(pvWasDeleted(w.foreignPV(w.ns+"-plain")), deletePV(w.ns+"-plain")), deletes, passes},
		{"mark it as ours, then delete it", theDispatcher, sequence(pvWasDeleted(marked), patchPV(marked, claimUID("x")), deletePV(marked)), foreign, passes},
		{"the same, of another driver, named after its claim", theDispatcher, sequence(pvWasDeleted(sameName), patchPV(sameName, claimUID(uid)), deletePV(sameName)), foreign, passes},
		{"put our finalizer on, delete it, take the finalizer off", theDispatcher, sequence(pvWasDeleted(finalized),
			patchPV(finalized, `{"metadata":{"finalizers":["flex-provisioner.io/storage"]}}`), deletePV(finalized), patchPV(finalized, noFinalizers)), foreign, passes},
		{"let the garbage collector delete it", theDispatcher, sequence(pvWasDeleted(owned), patchPV(owned, none)), foreign, passes},
		{"let a retained PV of ours be deleted", theDispatcher, sequence(pvWasDeleted(kept.Name),
			patchPV(kept.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`), deletePV(kept.Name), patchPV(kept.Name, noFinalizers)), deletes, passes},
		{"delete a PV of ours that is in use", theDispatcher, sequence(pvWasDeleted(used.Name),
			patchPV(used.Name, noFinalizers), deletePV(used.Name), patchPV(used.Name, noFinalizers)), deletes, passes},
		{"hand a PV of ours to another claim, then delete it", theDispatcher, sequence(pvWasDeleted(handed.Name),
			patchPV(handed.Name, `{"spec":{"claimRef":null}}`), deletePV(handed.Name), patchPV(handed.Name, noFinalizers)), nothing, passes},
		{"take a PV of ours that is in use from its claim", theDispatcher, patchPV(written.Name, `{"spec":{"claimRef":{"uid":"00000000-0000-0000-0000-000000000000"}}}`), nothing, passes},
		{"name another config revision", theDispatcher, sequence(revised,
			patchPV(written.Name, `{"metadata":{"annotations":{"flex-provisioner.io/config-revision":"a/b"}}}`)), nothing, passes},
		{"any status of a PV", theDispatcher, func(ctx context.Context, client kubernetes.Interface) error {
			_, err := client.CoreV1().PersistentVolumes().Patch(ctx, written.Name, types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`), metav1.PatchOptions{}, "status")
			return err
		}, "cannot patch resource", byRBAC},
		{"mount it by a bind, as whoever may change PVs", clusterAdmin, patchPV(written.Name, `{"spec":{"mountOptions":["rbind"]}}`), "none may be bind", passes},
		{"mount it without times", clusterAdmin, patchPV(written.Name, `{"spec":{"mountOptions":["noatime"]}}`), "", passes},
		{"set a PV to Retain", theDispatcher, patchPV(written.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`), "", passes},
		{"set it to Delete again", theDispatcher, patchPV(written.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`), nothing, passes},
		{"grow a PV", theDispatcher, patchPV(written.Name, `{"spec":{"capacity":{"storage":"2Gi"}}}`), "", passes},
		{"shrink it", theDispatcher, patchPV(written.Name, `{"spec":{"capacity":{"storage":"1Mi"}}}`), nothing, passes},
		{"take our finalizer off", theDispatcher, patchPV(written.Name, `{"metadata":{"finalizers":["kubernetes.io/pv-protection"]}}`), "", passes},
		{"put it on again", theDispatcher, patchPV(written.Name, `{"metadata":{"finalizers":["kubernetes.io/pv-protection","flex-provisioner.io/storage"]}}`), "", passes},
	}
}

func claimUID(uid string) string {
	return `{"metadata":{"annotations":{"flex-provisioner.io/claim-uid":"` + uid + `"}}}`
}

func (w *world) pvHas(ctx context.Context, name, key, value string) error {
	pv, err := kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err == nil && pv.Annotations[key] != value {
		err = fmt.Errorf("the annotation is %q", pv.Annotations[key])
	}
	return err
}

// claimSequences returns the attacks on claims of another driver, and on one of ours.
func (w *world) claimSequences() []attack {
	w.t.Helper()
	const foreign, nothing, status, annotations = "on a claim of another provisioner", "only annotations and the progress of a resize on a claim", "only the progress of a resize in the status of a claim", "only the annotations of a claim's result"
	owned, byStatus, ours := w.claim(w.ns, "owned"), w.claim(w.ns, "by-status"), w.claim(w.ns+"-ours", "ours")
	collected, noted := w.claim(w.ns+"-ours", "collected"), w.claim(w.ns, "noted")
	for _, claim := range []*corev1.PersistentVolumeClaim{owned, byStatus, ours, collected, noted} {
		w.eventually(toBind, "the PV controller to say whose the claim "+claim.Name+" is", func(ctx context.Context) error {
			now, err := lookClaim(ctx, claim)
			if err == nil && now.Annotations[annStorageProvisioner] == "" {
				err = errors.New("it has not")
			}
			return err
		})
	}
	const gone = `{"metadata":{"finalizers":null,"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"none","uid":"` + attackUID + `"}]}}`
	annotate := func(claim *corev1.PersistentVolumeClaim, key, value string) try {
		return patchClaim(claim, `{"metadata":{"annotations":{"`+key+`":`+value+`}}}`)
	}
	const selected = "volume.kubernetes.io/selected-node"
	node := func() attack {
		return attack{"send a claim to a node", theDispatcher, annotate(ours, selected, `"node1"`), annotations, passes}
	}
	return []attack{
		{"let the garbage collector delete a claim of another driver", theDispatcher, sequence(claimWasDeleted(owned), patchClaim(owned, gone)), foreign, passes},
		{"the same, by its status", theDispatcher, sequence(claimWasDeleted(byStatus), patchClaim(byStatus, gone, "status")), foreign, passes},
		{"let it delete a claim of ours", theDispatcher, sequence(claimWasDeleted(collected), patchClaim(collected, gone)), nothing, passes},
		{"write a result on a claim of another driver", theDispatcher, annotate(noted, "flex-provisioner.io/message", `"lies"`), foreign, passes},
		{"say that it is ours, then write on it", theDispatcher, sequence(claimHas(noted, "flex-provisioner.io/result", "failed"),
			annotate(noted, annStorageProvisioner, `"flex-provisioner.io"`), annotate(noted, "flex-provisioner.io/result", `"failed"`)), foreign, passes},
		{"an annotation of another controller", theDispatcher, annotate(ours, "example.com/copy-to", `"*"`), annotations, passes},
		node(),
		{"another resizer", theDispatcher, patchClaim(ours, `{"metadata":{"annotations":{"volume.kubernetes.io/storage-resizer":"csi.example.com"}}}`, "status"), annotations, passes},
		{"lose a claim", theDispatcher, patchClaim(ours, `{"status":{"phase":"Lost"}}`, "status"), status, passes},
		{"a condition of another controller", theDispatcher, patchClaim(ours, `{"status":{"conditions":[{"type":"ModifyingVolume","status":"True"}]}}`, "status"), status, passes},
		{"write a result", theDispatcher, annotate(ours, "flex-provisioner.io/message", `"the storage is full"`), "", passes},
		{"name the source of a clone", theDispatcher, annotate(ours, "k8s.io/CloneOf", `"default/source"`), "", passes},
		{"take its node off", theDispatcher, annotate(ours, selected, "null"), "", passes},
		{"write how far a resize is", theDispatcher, patchClaim(ours, `{"metadata":{"annotations":{"volume.kubernetes.io/storage-resizer":"flex-provisioner.io"}},
			"status":{"allocatedResources":{"storage":"2Gi"},"allocatedResourceStatuses":{"storage":"ControllerResizeInProgress"},"conditions":[{"type":"Resizing","status":"True"}]}}`, "status"), "", passes},
	}
}

func claimHas(claim *corev1.PersistentVolumeClaim, key, value string) func(context.Context) error {
	return func(ctx context.Context) error {
		now, err := lookClaim(ctx, claim)
		if err == nil && now.Annotations[key] != value {
			err = fmt.Errorf("the annotation is %q", now.Annotations[key])
		}
		return err
	}
}
