package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Kind is what is wrong.
type Kind string

// The kinds of findings.
const (
	// ClaimLost is a claim that is bound to a PV that does not exist.
	ClaimLost Kind = "ClaimLost"
	// PVTerminating is a PV that is being deleted, and keeps a finalizer of the dispatcher although
	// no claim is bound to it.
	PVTerminating Kind = "PVTerminating"
	// SecretMissing is a PV whose Secret does not exist, SecretLeft a Secret that no PV names.
	SecretMissing Kind = "SecretMissing"
	SecretLeft    Kind = "SecretLeft"
	// RecordHeld is the record of a claim that is bound or does not exist any more, PodHeld a pod
	// that the dispatcher's finalizer keeps longer than its run.
	RecordHeld Kind = "RecordHeld"
	PodHeld    Kind = "PodHeld"
	// JobUnserved and PodUnserved are a Job and a pod that have the dispatcher's label in a namespace
	// that is not known to be served, and so stand for no run.
	JobUnserved Kind = "JobUnserved"
	PodUnserved Kind = "PodUnserved"
	// VolumeMissing is a PV without its volume, VolumeLeft a volume that nothing stands for,
	// VolumeTwice one of several volumes of a claim.
	VolumeMissing Kind = "VolumeMissing"
	VolumeLeft    Kind = "VolumeLeft"
	VolumeTwice   Kind = "VolumeTwice"
)

// Finding is something that stands for nothing, or lacks what it stands for.
type Finding struct {
	Kind Kind
	// UID is that of the claim, as far as it is known.
	UID string
	// Object names it as kubectl does, or a volume by its ID.
	Object string
	// Age is since when it exists, or is being deleted. It is zero for a volume of which it is not
	// known.
	Age time.Duration
	// Size is of its volume, in bytes, zero if it is not known.
	Size int64
	Why  string
	// Fix is the command with which an administrator ends it.
	Fix string
	// Class is the storage class, as far as it is known. ListedBy is the class whose storage has
	// listed the volume, Node the node where it was listed, if the storage is on nodes.
	Class, ListedBy, Node string
	// Volume is the volume of VolumeLeft and VolumeTwice.
	Volume Volume
}

// Check returns what is wrong, by kind and object.
func Check(s State) []Finding {
	x := newIndex(s)
	found := slices.Concat(x.lostClaims(), x.terminating(), x.secretsMissing(), x.secretsLeft(), x.recordsHeld(), x.podsHeld(), x.unserved(), x.volumes())
	slices.SortFunc(found, func(a, b Finding) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object)) })
	return found
}

func (x *index) lostClaims() []Finding {
	var out []Finding
	for _, claim := range x.Claims {
		name := claim.Spec.VolumeName
		if name == contract.PVName(string(claim.UID)) && x.pvs[name] == nil && claim.DeletionTimestamp == nil && claim.Status.Phase == corev1.ClaimLost {
			out = append(out, Finding{
				Kind: ClaimLost, UID: string(claim.UID), Object: "persistentvolumeclaim/" + claim.Name + " -n " + claim.Namespace, Age: x.age(claim.CreationTimestamp),
				Size: claim.Spec.Resources.Requests.Storage().Value(), Why: "it is bound to the PersistentVolume " + name + ", which does not exist",
				Fix: "create the PersistentVolume " + name + " again over its volume, from a backup or from the Job of the claim",
			})
		}
	}
	return out
}

func (x *index) terminating() []Finding {
	var out []Finding
	for _, pv := range x.PVs {
		if pv.DeletionTimestamp != nil && !x.isBound(pv) && slices.Contains(pv.Finalizers, contract.FinalizerStorage) && x.age(*pv.DeletionTimestamp) > Grace {
			out = append(out, x.ofPV(PVTerminating, pv, x.age(*pv.DeletionTimestamp), "it is being deleted, and its volume is still to be deleted",
				quote.Command("kubectl", "describe", "persistentvolume", pv.Name)+"  # its newest event names cause and remedy"))
		}
	}
	return out
}

func (x *index) ofPV(kind Kind, pv *corev1.PersistentVolume, age time.Duration, why, fix string) Finding {
	return Finding{
		Kind: kind, UID: pv.Annotations[contract.AnnClaimUID], Object: "persistentvolume/" + pv.Name, Class: pv.Spec.StorageClassName, Age: age, Size: pv.Spec.Capacity.Storage().Value(), Why: why, Fix: fix,
	}
}

func (x *index) secretsMissing() []Finding {
	var out []Finding
	for _, pv := range x.PVs {
		namespace, name, ok := strings.Cut(pv.Annotations[contract.AnnSecret], "/")
		if !ok || pv.DeletionTimestamp != nil || x.age(pv.CreationTimestamp) <= Grace || x.secrets[types.NamespacedName{Namespace: namespace, Name: name}] {
			continue
		}
		out = append(out, x.ofPV(SecretMissing, pv, x.age(pv.CreationTimestamp), "its Secret "+quote.Name(namespace+"/"+name)+" does not exist: no node can log in to its volume",
			createSecret(pv, namespace, name)))
	}
	return out
}

// createSecret returns the command that creates the Secret of a PV. Its name is an annotation's:
// one that names no Secret may be a flag for kubectl. In another namespace than that of the PV's
// config, others could read the login.
func createSecret(pv *corev1.PersistentVolume, namespace, name string) string {
	home, _, _ := strings.Cut(pv.Annotations[contract.AnnRevision], "/")
	if namespace != home || len(validation.IsDNS1123Label(namespace))+len(validation.IsDNS1123Subdomain(name)) > 0 {
		return "let the annotation " + contract.AnnSecret + " name a Secret, with the login that the storage has for the volume"
	}
	return quote.Command("kubectl", "create", "secret", "generic", name, "-n", namespace) + " …  # with the login that the storage has for the volume"
}

// secretsLeft believes a PV of another claim than a Secret's nothing: whoever has the token of its run
// has written its annotations. A Secret does not say of which dispatcher it is, so the PVs of others count.
func (x *index) secretsLeft() []Finding {
	named := map[string]bool{} // "namespace/name UID"
	for _, pv := range slices.Concat(x.PVs, x.Others) {
		named[pv.Annotations[contract.AnnSecret]+" "+pv.Annotations[contract.AnnClaimUID]] = true
	}
	var out []Finding
	for i := range x.Secrets {
		s := &x.Secrets[i]
		uid := s.Labels[contract.LabelClaimUID]
		at := s.Namespace + "/" + s.Name + " "
		if age := x.age(s.CreationTimestamp); age > Grace && !named[at+uid] && !named[at] && !x.isWaitedFor(uid) {
			out = append(out, Finding{
				Kind: SecretLeft, UID: uid, Object: "secret/" + s.Name + " -n " + s.Namespace, Age: age, Why: "no PersistentVolume names it, and no run is at work for its claim",
				Fix: quote.Command("kubectl", "delete", "secret", s.Name, "-n", s.Namespace) + "  # unless its volume is kept",
			})
		}
	}
	return out
}

func (x *index) recordsHeld() []Finding {
	var out []Finding
	for _, job := range x.Jobs {
		since, over := x.overSince(job)
		if !runs.IsRecord(job) || !over || x.age(since) <= Grace {
			continue
		}
		for _, uid := range jobs.UIDs(job) {
			if why := x.whyNotHeld(uid); why != "" && runs.RecordOf(job, uid).Held {
				out = append(out, Finding{
					Kind: RecordHeld, UID: uid, Object: "job/" + job.Name + " -n " + job.Namespace, Age: x.age(since), Size: jobs.RecordOf(job, uid).Size, Why: why,
					Fix: quote.Command("kubectl", "annotate", "--overwrite", "job", job.Name, "-n", job.Namespace, jobs.AnnForget+"="+uid) +
						"  # once nothing of it is in the storage; the newest event says why it is held",
				})
			}
		}
	}
	return out
}

// whyNotHeld returns why no record of a claim is to be held any more, empty if one is.
func (x *index) whyNotHeld(uid string) string {
	switch claim := x.claims[uid]; {
	case claim == nil:
		return "its claim no longer exists, and the volume that may have been created for it is neither proven nor undone"
	case claim.Spec.VolumeName != "":
		return "its claim is bound, and no dispatcher has released it"
	default:
		return ""
	}
}

func (x *index) podsHeld() []Finding {
	var out []Finding
	for _, pod := range x.Pods {
		if why, fix := x.whyPodHeld(pod); why != "" && x.age(pod.CreationTimestamp) > Grace {
			out = append(out, Finding{
				Kind: PodHeld, UID: pod.Labels[contract.LabelClaimUID], Object: "pod/" + pod.Name + " -n " + pod.Namespace, Age: x.age(pod.CreationTimestamp), Why: why, Fix: fix,
			})
		}
	}
	return out
}

// whyPodHeld returns why a pod is there for nothing, empty if it is not, and the command that ends
// it. The container of a pod whose Job no longer exists ends by itself.
func (x *index) whyPodHeld(pod *corev1.Pod) (why, fix string) {
	job := x.jobs[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[batchv1.JobNameLabel]}]
	mayRun, _ := runs.MayRun(pod, x.Now)
	switch {
	case job == nil && runs.IsLeftGated(pod):
		return "its Job was deleted without it, and nothing starts it any more", runs.DeleteCommand(pod)
	case !runs.HasFinalizer(pod) || job == nil && mayRun || job != nil && runs.IsRecord(job):
		return "", ""
	default:
		return "a finalizer of the dispatcher keeps it, and its run is on record", fixOfPod(pod)
	}
}

// fixOfPod returns the command that removes the dispatcher's finalizer of a pod, and no other: by
// the Job controller's it still counts the pod. It does nothing if the finalizers have changed
// meanwhile.
func fixOfPod(pod *corev1.Pod) string {
	at := slices.Index(pod.Finalizers, jobs.FinalizerRecord)
	return quote.Command("kubectl", "patch", "pod", pod.Name, "-n", pod.Namespace, "--type=json", "-p", fmt.Sprintf(
		`[{"op":"test","path":"/metadata/finalizers/%[1]d","value":"%[2]s"},{"op":"remove","path":"/metadata/finalizers/%[1]d"}]`, at, jobs.FinalizerRecord))
}

func (x *index) unserved() []Finding {
	var out []Finding
	add := func(kind Kind, resource string, obj metav1.Object) {
		if age := x.age(obj.GetCreationTimestamp()); age > Grace {
			out = append(out, Finding{
				Kind: kind, Object: resource + "/" + obj.GetName() + " -n " + obj.GetNamespace(), Age: age,
				Why: "it has the dispatcher's label, but no class, no PersistentVolume and no Lease names its namespace: it is not taken for a run",
				Fix: quote.Command("kubectl", "delete", resource, obj.GetName(), "-n", obj.GetNamespace()) +
					"  # unless a dispatcher serves the namespace: name its Deployment by --dispatcher, or give flex-dispatcher audit " + quote.Command("--config-namespaces="+obj.GetNamespace()),
			})
		}
	}
	for _, job := range x.UnservedJobs {
		add(JobUnserved, "job", job)
	}
	for _, pod := range x.UnservedPods {
		add(PodUnserved, "pod", pod)
	}
	return out
}
