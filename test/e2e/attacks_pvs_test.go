//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// attackPV is a PV of a claim, with a source and changes.
func attackPV(name, uid, class string, source corev1.PersistentVolumeSource, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"flex-provisioner.io/claim-uid": uid}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName:       class,
			PersistentVolumeSource: source,
			ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "attacked", UID: types.UID(uid)},
		},
	}
	for _, c := range change {
		c(pv)
	}
	return pv
}

// annotatedPV gives a PV an annotation.
func annotatedPV(key, value string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Annotations[key] = value }
}

func reclaimed(policy corev1.PersistentVolumeReclaimPolicy) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy }
}

func ofCapacity(size string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
}

func ownedByNode(pv *corev1.PersistentVolume) { pv.OwnerReferences = ownedBy("Node") }

func finalizedBy(finalizers ...string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Finalizers = finalizers }
}

// naming lets a PV name a claim.
func naming(namespace, name string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name = namespace, name
	}
}

func mounted(options ...string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.MountOptions = options }
}

func anExport() corev1.PersistentVolumeSource { return exportOf("192.0.2.10") }

// createPV tries it without storing it: every policy judges a dry run as well.
func createPV(pv *corev1.PersistentVolume) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// A stolen token of a provisioner, or of the dispatcher, creates no PV on a directory of a node but
// that of the volume, and none that another driver, Kubernetes or the dispatcher takes for
// something else later. What both need passes.
func TestTokensWriteNoPVOfAnotherPathOrClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "steal-pvs")
	w.run(w.pvAttacks(), true)
}

// mayUse lets an account name a Secret of the test's namespace in PVs.
func (w *world) mayUse(secret, name string) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Name: "use-" + secret, Namespace: w.ns}
	_, err := kube.RbacV1().Roles(w.ns).Create(w.ctx(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"flex-provisioner.io"}, Resources: []string{"secrets"}, ResourceNames: []string{secret}, Verbs: []string{"use"}},
	}}, metav1.CreateOptions{})
	w.must(err, "create a Role")
	_, err = kube.RbacV1().RoleBindings(w.ns).Create(w.ctx(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ownNamespace, Name: name}},
	}, metav1.CreateOptions{})
	w.must(err, "bind it")
	w.eventually(toBind, "the Role to count", func(ctx context.Context) error {
		review, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + ownNamespace + ":" + name,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: w.ns, Group: "flex-provisioner.io", Resource: "secrets", Name: secret, Verb: "use",
			},
		}}, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = errors.New("it does not yet")
		}
		return err
	})
}

// pvAttacks returns the attacks by new PVs. They change nothing: every policy judges a dry run as
// well.
func (w *world) pvAttacks() []attack {
	const name, own, path = "pvc-" + attackUID, volumesFolder + "/pvc-" + attackUID, "must be " + volumesFolder + "/pvc-UID"
	const batchOwn, filesystem = "may write only the PersistentVolume of its own claim", "must be ext3, ext4, xfs or btrfs"
	const identifier = "must be 16 hexadecimal digits, and a WWID in fc.wwids an NAA or EUI identifier"
	directory := corev1.HostPathDirectory
	pv := func(source corev1.PersistentVolumeSource) func(context.Context, kubernetes.Interface) error {
		return createPV(attackPV(name, attackUID, batchClass, source))
	}
	optioned := func(option string) func(context.Context, kubernetes.Interface) error {
		return createPV(attackPV(name, attackUID, batchClass, anExport(), mounted(option)))
	}
	withSecret := func(namespace, secret string) func(context.Context, kubernetes.Interface) error {
		return createPV(attackPV(name, attackUID, batchClass, chapFrom(namespace, secret), annotatedPV("flex-provisioner.io/config-revision", "flex-provisioner/gold-1")))
	}
	const anySecret = "a Secret that a PersistentVolume names must be"
	w.mayUse("shared", "cinder-provisioner")
	return []attack{
		{"its own PV, with a Secret that its account may use", cinderPod, withSecret(w.ns, "shared"), "", passes},
		{"the same, and another beside it", cinderPod, withSecret(w.ns, "shared2"), anySecret, passes},
		{"the login of its class, for the kubelet of a pod of the claim", cinderPod, withSecret("flex-provisioner", "cinder"), anySecret, passes},
		{"the same", theDispatcher, withSecret("flex-provisioner", "cinder"), anySecret, passes},
		{"the same, by a CSI driver", cinderPod, pv(publishedWith("flex-provisioner", "cinder")), anySecret, passes},
		{"the Secret of another volume", cinderPod, withSecret("flex-provisioner", "pvc-"+victimUID), anySecret, passes},
		{"a Secret of another tenant, with the name of its own", cinderPod, withSecret("default", name), anySecret, passes},
		{"the same", theDispatcher, withSecret("default", name), anySecret, passes},
		{"the same, by a config that would be there", theDispatcher, createPV(attackPV(name, attackUID, batchClass, chapFrom("default", name), annotatedPV("flex-provisioner.io/config-revision", "default/gold-1"))), anySecret, passes},
		{"the same, in the namespace of the claim", cinderPod, withSecret("", name), anySecret, passes},
		{"its own PV, with its Secret", cinderPod, withSecret("flex-provisioner", name), "", passes},
		{"its own PV, with another of its Secrets", cinderPod, withSecret("flex-provisioner", name+"-discovery"), "", passes},
		{"a PV with a Secret of its volume", theDispatcher, withSecret("flex-provisioner", name), "", passes},
		{"a PV with hostPath /", theDispatcher, pv(aDirectory("/", directory)), path, passes},
		{"a PV with hostPath /", directoryPod, pv(aDirectory("/", directory)), path, passes},
		{"a path below a link in the volume", directoryPod, pv(aDirectory(own+"/link", directory)), path, passes},
		{"a path below a link in the volume", theDispatcher, pv(aDirectory(own+"/link", directory)), path, passes},
		{"a link beside the volumes", directoryPod, pv(aDirectory(volumesFolder+"/link", directory)), path, passes},
		{"all volumes of the node", directoryPod, pv(aDirectory(volumesFolder, directory)), path, passes},
		{"another claim's directory", theDispatcher, pv(aDirectory(volumesFolder+"/pvc-"+victimUID, directory)), "name of its PersistentVolume", passes},
		{"a socket", directoryPod, pv(aDirectory(own, corev1.HostPathSocket)), "hostPath type Directory", passes},
		{"a PV by a list", cinderList, createPV(attackPV(name, attackUID, w.ns, anExport())), batchOwn, passes},
		{"a PV by a token of no pod", cinderUnbound, createPV(attackPV(name, attackUID, w.ns, anExport())), "only a token that is bound to a provisioning pod", passes},
		{"a PV of any name", theDispatcher, createPV(attackPV(w.ns+"-2", attackUID, w.ns, anExport())), "the dispatcher creates only", passes},
		{"a PV of another claim", theDispatcher, createPV(attackPV(name, victimUID, w.ns, anExport())), "the dispatcher creates only", passes},
		{"a file system that is directories of the node", cinderPod, pv(aDisk("overlay")), filesystem, passes},
		{"the same", theDispatcher, pv(aDisk("overlay")), filesystem, passes},
		{"the same, by a source that is migrated", cinderPod, pv(migrated()), "volume source of a PersistentVolume must be", passes},
		{"a disk of the node", cinderPod, pv(aDiskNamed("a_b")), identifier, passes},
		{"the same", theDispatcher, pv(aDiskNamed("a_b")), identifier, passes},
		{"a port of another form", cinderPod, pv(portsOf("500a0981891b8dcg")), identifier, passes},
		{"the same", theDispatcher, pv(portsOf("500a0981891b8dc")), identifier, passes},
		{"a file of the node, by the name of an interface", cinderPod, pv(aTarget("a/b")), "names without a slash", passes},
		{"a source for which no kubelet has a plugin", cinderPod, pv(anImage()), "volume source of a PersistentVolume must be", passes},
		{"a directory, as the server of an export", cinderPod, pv(exportOf("a/b")), "an address or a DNS name", passes},
		{"the same", theDispatcher, pv(exportOf("a/b")), "an address or a DNS name", passes},
		{"the export of another volume, by a path that leads above", cinderPod, pv(pathOf("/exports/a/../b")), "no part ..", passes},
		{"the same", theDispatcher, pv(pathOf("/exports/..")), "no part ..", passes},
		{"a line break in the path of an export", cinderPod, pv(pathOf("/exports/a\nb")), "no control character", passes},
		{"its own PV, with dots in the path of its export", cinderPod, pv(pathOf("/exports/a..b/.c d")), "", passes},
		{"a bind mount", cinderPod, optioned("ro,bind"), "none may be bind", passes},
		{"the same", theDispatcher, optioned("rbind"), "none may be bind", passes},
		{"a path in a mount option", cinderPod, optioned("a=/b"), "must name no path", passes},
		{"a device, by its number", cinderPod, optioned("journal_dev=1"), "none may be bind", passes},
		{"an option of a program of the node", cinderPod, optioned("X-a"), "begin with x-", passes},
		{"a PV of a class without the verb batch", batchPod, createPV(attackPV("pvc-"+victimUID, victimUID, w.ns, anExport())), batchOwn, passes},
		{"its own PV, a disk", cinderPod, pv(aDisk("xfs")), "", passes},
		{"its own PV, a disk by its ports", cinderPod, pv(portsOf("500a0981891b8dc5")), "", passes},
		{"its own PV, by IPv6", cinderPod, pv(exportOf("2001:db8::10")), "", passes},
		{"a blank in a mount option", cinderPod, optioned("hard rw"), "have no blank", passes},
		{"a line break in one", cinderPod, optioned("hard\nrw"), "have no blank", passes},
		{"its own PV, with mount options", cinderPod, optioned("nfsvers=4.1,hard"), "", passes},
		{"its own PV, a disk by its identifier", cinderPod, pv(aDiskNamed("3624a93709714b5cb91634c470002b2c8")), "", passes},
		{"its own PV, a directory", directoryPod, pv(aDirectory(own, directory)), "", passes},
		{"a PV that a container describes", theDispatcher, pv(aDirectory(own, corev1.HostPathDirectoryOrCreate)), "", passes},
		{"the same, not on a node", theDispatcher, pv(anExport()), "", passes},
		{"a batch's PV for a claim of any class, which no policy knows", batchPod, createPV(attackPV("pvc-"+victimUID, victimUID, batchClass, anExport())), "", passes},
	}
}

// A stolen token of a provisioner, or of the dispatcher, marks no PV as something that another
// driver, Kubernetes or the dispatcher acts upon later.
func TestTokensMarkNoPVForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mark-pvs")
	w.run(w.markAttacks(), true)
}

// markAttacks returns the attacks by what stands on a new PV. They change nothing, as those of
// pvAttacks.
func (w *world) markAttacks() []attack {
	const revision, by, migrated = "flex-provisioner.io/config-revision", "pv.kubernetes.io/provisioned-by", "pv.kubernetes.io/migrated-to"
	pv := func(change ...func(*corev1.PersistentVolume)) func(context.Context, kubernetes.Interface) error {
		return createPV(attackPV("pvc-"+attackUID, attackUID, w.ns, anExport(), change...))
	}
	whole := []func(*corev1.PersistentVolume){
		annotatedPV(by, "flex-provisioner.io"), finalizedBy("flex-provisioner.io/storage"), reclaimed(corev1.PersistentVolumeReclaimDelete),
	}
	const foreign, owner = "of Kubernetes' annotations", "with no owner"
	const names, printed, cloneOf = "must be names of Kubernetes", "no line break and no control character", "flex-provisioner.io/clone-of"
	const sizes = "an exponent of at most two digits"
	const volumeID, ofID = "flex-provisioner.io/cinder-volume-id", "must be of letters, digits and hyphens"
	escape := naming("kube-system", "x\x1b[31m\nRemedy: a")
	return []attack{
		{"a config of another namespace", cinderPod, pv(annotatedPV(revision, nodeNamespace+"/node-directory-0123456789abcdef")), "must be of the namespace", passes},
		{"the same", directoryPod, pv(annotatedPV(revision, ownNamespace+"/cinder-iscsi-0123456789abcdef")), "must be of the namespace", passes},
		{"a PV that another driver deletes", cinderPod, pv(annotatedPV(by, "csi.example.com")), foreign, passes},
		{"the same, by its migration", cinderPod, pv(annotatedPV(migrated, "csi.example.com")), foreign, passes},
		{"a PV that Kubernetes empties", cinderPod, pv(reclaimed(corev1.PersistentVolumeReclaimRecycle)), "must be Delete or Retain", passes},
		{"a PV that the garbage collector deletes", cinderPod, pv(ownedByNode), owner, passes},
		{"a PV that another controller keeps", cinderPod, pv(finalizedBy("example.com/kept")), owner, passes},
		{"a PV that another driver deletes", theDispatcher, pv(annotatedPV(by, "csi.example.com")), owner, passes},
		{"the same, by its migration", theDispatcher, pv(annotatedPV(migrated, "csi.example.com")), owner, passes},
		{"a PV that Kubernetes empties", theDispatcher, pv(reclaimed(corev1.PersistentVolumeReclaimRecycle)), owner, passes},
		{"a PV that the garbage collector deletes", theDispatcher, pv(ownedByNode), owner, passes},
		{"a PV that another controller keeps", theDispatcher, pv(finalizedBy("example.com/kept")), owner, passes},
		{"a line of its own and an escape sequence, as the name of its claim", cinderPod, pv(escape), names, passes},
		{"the same", theDispatcher, pv(escape), names, passes},
		{"a claim that Kubernetes cannot look up", cinderPod, pv(naming("default", "a/b")), names, passes},
		{"the same, by its namespace", cinderPod, pv(naming("a/b", "data")), names, passes},
		{"no namespace of its claim", cinderPod, pv(naming("", "data")), names, passes},
		{"a line of its own, as the config revision", cinderPod, pv(annotatedPV(revision, ownNamespace+"/gold-1\nRemedy: a")), "as namespace/name", passes},
		{"a command, as the same", cinderPod, pv(annotatedPV(revision, ownNamespace+"/$(a)")), "as namespace/name", passes},
		{"a line of its own, as the claim that it is a copy of", cinderPod, pv(annotatedPV(cloneOf, "app/data\nRemedy: a")), printed, passes},
		{"an escape sequence, as the same", cinderPod, pv(annotatedPV(cloneOf, "app/data\x1b[31m")), printed, passes},
		{"another key of a config, as the ID of its volume", cinderPod, pv(annotatedPV(volumeID, `x", "image": "y`)), ofID, passes},
		{"an option of a command, as the same", cinderPod, pv(annotatedPV(volumeID, "--os-auth-url=http://198.51.100.1")), ofID, passes},
		{"the same, as the ID of its attachment", cinderPod, pv(annotatedPV("flex-provisioner.io/cinder-attachment-id", "--os-auth-url=http://198.51.100.1")), ofID, passes},
		{"a capacity with a long exponent", cinderPod, pv(ofCapacity("1e102")), sizes, passes},
		{"the same", theDispatcher, pv(ofCapacity("1e102")), "an exponent of more than two digits", passes},
		{"a size of its file system", cinderPod, pv(annotatedPV("flex-provisioner.io/file-system-size", "1e-100")), sizes, passes},
		{"an ID", cinderPod, pv(append(whole, annotatedPV(volumeID, "6feffd2e-407e-4ab6-b316-4cc0218d4662"))...), "", passes},
		{"a copy of a claim with a name of two parts", cinderPod, pv(naming("app", "data.web-0"), annotatedPV(cloneOf, "app/data")), "", passes},
		{"its own PV, of the skeleton", cinderPod, pv(append(whole, annotatedPV(revision, ownNamespace+"/cinder-iscsi-0123456789abcdef"))...), "", passes},
		{"the same", directoryPod, pv(append(whole, annotatedPV(revision, nodeNamespace+"/node-directory-0123456789abcdef"))...), "", passes},
		{"a described PV, of the skeleton", theDispatcher, pv(append(whole, annotatedPV(revision, nodeNamespace+"/node-directory-0123456789abcdef"))...), "", passes},
	}
}

// A PV becomes one of the project by an annotation, also when it has been there for a long time. Its
// source is judged then, as if it were new.
func TestAPVThatBecomesOneOfTheProjectIsJudgedAsANewOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "become")
	w.run(w.becomingAttacks(), true)
}

// becomingAttacks makes a PV of a directory of the nodes and one of a volume's own, and returns the
// attempts to make the first one of the project. They are dry runs.
func (w *world) becomingAttacks() []attack {
	w.t.Helper()
	const claimUID, by, path = `"flex-provisioner.io/claim-uid":"` + attackUID + `"`, `"pv.kubernetes.io/provisioned-by":"flex-provisioner.io"`, "must be " + volumesFolder + "/pvc-UID"
	wrong := w.keepPV("wrong", aDirectory("/etc", corev1.HostPathDirectory))
	right := w.keepPV("right", aDirectory(volumesFolder+"/pvc-"+attackUID, corev1.HostPathDirectory))
	bound := w.keepPV("bound", anExport(), mounted("bind"))
	annotated := func(text string) string { return `{"metadata":{"annotations":{` + text + `}}}` }
	return []attack{
		{"a PV of a directory of the node becomes ours", clusterAdmin, patchesPV(wrong, annotated(claimUID)), path, passes},
		{"the same, by its provisioner", clusterAdmin, patchesPV(wrong, annotated(by)), path, passes},
		{"the same, by both", clusterAdmin, patchesPV(wrong, annotated(claimUID+","+by)), path, passes},
		{"the same, by way of its status", clusterAdmin, patchesPV(wrong, annotated(claimUID), "status"), path, passes},
		{"a PV with a bind mount becomes ours", clusterAdmin, patchesPV(bound, annotated(claimUID)), "none may be bind", passes},
		{"a PV of a volume's own directory becomes ours", clusterAdmin, patchesPV(right, annotated(claimUID+","+by)), "", passes},
		{"a PV of others gets another annotation", clusterAdmin, patchesPV(wrong, annotated(`"example.com/a":"b"`)), "", passes},
		{"the same, another provisioner", clusterAdmin, patchesPV(wrong, annotated(`"pv.kubernetes.io/provisioned-by":"csi.example.com"`)), "", passes},
		{"the same, in its status", clusterAdmin, patchesPV(wrong, `{"status":{"message":"a"}}`, "status"), "", passes},
	}
}

// keepPV makes a PV that is not of the project, until the test's end, and returns its name. No claim
// is of its class, so none is bound to it.
func (w *world) keepPV(name string, source corev1.PersistentVolumeSource, change ...func(*corev1.PersistentVolume)) string {
	w.t.Helper()
	pv := attackPV(w.ns+"-"+name, attackUID, w.ns+"-others", source, change...)
	pv.Annotations, pv.Spec.ClaimRef = nil, nil
	_, err := kube.CoreV1().PersistentVolumes().Create(w.ctx(), pv, metav1.CreateOptions{})
	w.must(err, "create a PV of others")
	w.remove(func() {
		w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv.Name, metav1.DeleteOptions{}), "the PV "+pv.Name)
	})
	return pv.Name
}

// patchesPV tries a merge patch of a PV.
func patchesPV(name, change string, subresources ...string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, []byte(change), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
		return err
	}
}

// No policy knows which namespace and name the claim with a UID has. A PV that names another claim,
// with the UID of its own, is bound to neither: Kubernetes compares UIDs.
func TestPVThatNamesAnotherClaimBindsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "misdirect")
	w.class(w.ns, w.oursAlone) // and no dispatcher serves it
	victim := w.claim(w.ns, "victim")
	const uid = "11111111-2222-3333-4444-888888888888"
	pv := attackPV("pvc-"+uid, uid, w.ns, anExport())
	pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name = victim.Namespace, victim.Name
	thief := account(ownNamespace, "cinder-provisioner", "provision-"+uid+"-1-abcde")
	_, err := w.as(thief).CoreV1().PersistentVolumes().Create(w.ctx(), pv, metav1.CreateOptions{})
	w.must(err, "write a PV for another claim with the UID of its own")
	w.remove(func() {
		w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv.Name, metav1.DeleteOptions{}), "the PV "+pv.Name)
	})
	w.always(5*time.Second, "the claim to be left alone", func(ctx context.Context) error {
		now, err := kube.CoreV1().PersistentVolumeClaims(w.ns).Get(ctx, victim.Name, metav1.GetOptions{})
		if err == nil && (now.Spec.VolumeName != "" || now.Status.Phase != corev1.ClaimPending) {
			err = errors.New("it is bound to " + now.Spec.VolumeName)
		}
		return err
	})
}
