//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Claims that do not exist, after which pods and volumes of the attacks are named.
const (
	attackUID = "11111111-2222-3333-4444-777777777777"
	victimUID = "99999999-2222-3333-4444-777777777777"
)

// attack is one request as a stolen token would send it. An empty refusal says that it must pass.
type attack struct {
	what    string
	as      rest.ImpersonationConfig
	try     func(context.Context, kubernetes.Interface) error
	refusal string
}

// account is a ServiceAccount as the API server knows it by a token; with the name of a pod, by one that is bound to the pod.
func account(namespace, name, pod string) rest.ImpersonationConfig {
	as := rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	if pod != "" {
		as.Extra = map[string][]string{"authentication.kubernetes.io/pod-name": {pod}}
	}
	return as
}

// Accounts of the attacks. The Job controller creates every pod of a Job.
var (
	cinderPod     = account(ownNamespace, "cinder-provisioner", "provision-"+attackUID+"-1-abcde")
	cinderDelete  = account(ownNamespace, "cinder-provisioner", "delete-"+attackUID+"-1-abcde")
	cinderUnbound = account(ownNamespace, "cinder-provisioner", "")
	directoryPod  = account(nodeNamespace, "directory-provisioner", "provision-"+attackUID+"-1-abcde")
	batchPod      = account(nodeNamespace, "file-server-provisioner", "provision-"+attackUID+"-1-abcde")
	theDispatcher = account(ownNamespace, dispatcher, "")
	jobController = account("kube-system", "job-controller", "")
)

// as returns a client for another user.
func (w *world) as(user rest.ImpersonationConfig) kubernetes.Interface {
	w.t.Helper()
	config := rest.CopyConfig(kubeConfig)
	config.Impersonate = user
	client, err := kubernetes.NewForConfig(config)
	w.must(err, "make a client for "+user.UserName)
	return client
}

// run tries every request and prints the table.
func (w *world) run(attacks []attack) {
	w.t.Helper()
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, "attack\taccount\texpected\tgot")
	for _, a := range attacks {
		got, expected := "passes", "passes"
		if err := a.try(w.ctx(), w.as(a.as)); err != nil {
			got = err.Error()
		}
		if a.refusal != "" {
			expected = "refused: " + a.refusal
		}
		if got == "passes" != (a.refusal == "") || !strings.Contains(got, a.refusal) {
			w.t.Errorf("%s as %s: expected %s, got %s", a.what, a.as.UserName, expected, got)
		}
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", a.what, strings.TrimPrefix(a.as.UserName, "system:serviceaccount:"), expected, got)
	}
	_ = columns.Flush()
	w.t.Logf("\n%s", out.String())
}

func createSecret(name string, kind corev1.SecretType, change ...func(*corev1.Secret)) func(context.Context, kubernetes.Interface) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind}
	for _, c := range change {
		c(secret)
	}
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Secrets(ownNamespace).Create(ctx, secret, metav1.CreateOptions{})
		return err
	}
}

func deleteSecret(name string, options metav1.DeleteOptions) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		return client.CoreV1().Secrets(ownNamespace).Delete(ctx, name, options)
	}
}

// chapSecret has what the kubelet reads.
func chapSecret(secret *corev1.Secret) {
	secret.StringData = map[string]string{chapUser: "user", chapPassword: "5d1f0c-of-the-attack"}
}

// asksForToken lets kube-controller-manager fill the Secret with a token of the dispatcher, without an end.
func asksForToken(secret *corev1.Secret) {
	secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: dispatcher}
}

// A stolen token of a provisioner reads no Secret by deleting it, gets no token of another ServiceAccount, and deletes no
// Secret of another claim. What its image needs passes.
func TestProvisionersTokenReachesOnlySecretsOfItsClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "steal-secrets")
	w.remove(func() {
		for _, name := range []string{"pvc-" + victimUID, "pvc-" + attackUID, w.ns} {
			w.gone(kube.CoreV1().Secrets(ownNamespace).Delete(w.ctx(), name, metav1.DeleteOptions{}), "Secret "+name)
		}
	})
	w.must(createSecret("pvc-"+victimUID, corev1.SecretTypeOpaque)(w.ctx(), kube), "create the Secret of another claim")
	const others, token, chap = "only the Secrets of its own claim", corev1.SecretTypeServiceAccountToken, "kubernetes.io/iscsi-chap"
	read := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, PropagationPolicy: new(metav1.DeletePropagationForeground)}
	w.run([]attack{
		{"read cinder by a dry run of its delete", cinderPod, deleteSecret("cinder", read), others},
		{"the same", cinderUnbound, deleteSecret("cinder", read), "only a token that is bound to a provisioning pod"},
		{"a token of the dispatcher", cinderPod, createSecret("pvc-"+attackUID, token, asksForToken), "no volume needs a Secret of the type"},
		{"the same, of another name", cinderPod, createSecret(w.ns, token, asksForToken), others},
		{"delete another claim's Secret", cinderPod, deleteSecret("pvc-"+victimUID, metav1.DeleteOptions{}), others},
		{"a Secret with a generated name", cinderPod, createSecret("", chap, chapSecret, func(s *corev1.Secret) {
			s.GenerateName = "pvc-" + attackUID + "-"
		}), "not a generated one"},
		{"the CHAP Secret of its claim", cinderPod, createSecret("pvc-"+attackUID, chap, chapSecret), ""},
		{"its delete", cinderDelete, deleteSecret("pvc-"+attackUID, metav1.DeleteOptions{}), ""},
		{"a Secret without a type", cinderPod, createSecret("pvc-"+attackUID, ""), ""},
	})
}

// attackPV is a PV of a claim, with a source.
func attackPV(name, uid, class string, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"flex-provisioner.io/claim-uid": uid}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName:       class,
			PersistentVolumeSource: source,
			ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "attacked", UID: types.UID(uid)},
		},
	}
}

func aDirectory(path string, kind corev1.HostPathType) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}
}

func anExport() corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "192.0.2.10", Path: "/a"}}
}

// createPV tries it without storing it: every policy judges a dry run as well.
func createPV(pv *corev1.PersistentVolume) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// A stolen token of a provisioner, or of the dispatcher, reaches no directory of a node but that of the volume, and the
// dispatcher's neither binds nor deletes a PV that is not of this project. What both need passes.
func TestTokensWriteNoPVOfAnotherPathOrClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "steal-pvs")
	foreign := attackPV(w.ns, victimUID, w.ns, anExport())
	foreign.Annotations, foreign.Spec.ClaimRef = nil, nil
	pvs := kube.CoreV1().PersistentVolumes()
	_, err := pvs.Create(w.ctx(), foreign, metav1.CreateOptions{})
	w.must(err, "create a PV of an administrator")
	w.remove(func() { w.gone(pvs.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "the PV "+w.ns) })
	const name, own, path = "pvc-" + attackUID, volumesFolder + "/pvc-" + attackUID, "must be " + volumesFolder + "/pvc-UID"
	directory, batchOwn := corev1.HostPathDirectory, "may write only the PersistentVolume of its own claim"
	pv := func(source corev1.PersistentVolumeSource) func(context.Context, kubernetes.Interface) error {
		return createPV(attackPV(name, attackUID, batchClass, source))
	}
	w.run([]attack{
		{"a PV with hostPath /", theDispatcher, pv(aDirectory("/", directory)), path},
		{"a PV with hostPath /", directoryPod, pv(aDirectory("/", directory)), path},
		{"a path below a link in the volume", directoryPod, pv(aDirectory(own+"/link", directory)), path},
		{"a path below a link in the volume", theDispatcher, pv(aDirectory(own+"/link", directory)), path},
		{"a link beside the volumes", directoryPod, pv(aDirectory(volumesFolder+"/link", directory)), path},
		{"all volumes of the node", directoryPod, pv(aDirectory(volumesFolder, directory)), path},
		{"another claim's directory", theDispatcher, pv(aDirectory(volumesFolder+"/pvc-"+victimUID, directory)), "name of its PersistentVolume"},
		{"a socket", directoryPod, pv(aDirectory(own, corev1.HostPathSocket)), "hostPath type Directory"},
		{"a PV of any name", theDispatcher, createPV(attackPV(w.ns+"-2", attackUID, w.ns, anExport())), "the dispatcher creates only"},
		{"a PV of another claim", theDispatcher, createPV(attackPV(name, victimUID, w.ns, anExport())), "the dispatcher creates only"},
		{"hand a PV to a claim", theDispatcher, patchPV(w.ns, `{"spec":{"claimRef":{"namespace":"default","name":"attacked"}}}`), "neither the claim"},
		{"let a PV be reclaimed", theDispatcher, patchPV(w.ns, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`), "nor the reclaim policy"},
		{"delete another's PV", theDispatcher, func(ctx context.Context, client kubernetes.Interface) error {
			return client.CoreV1().PersistentVolumes().Delete(ctx, w.ns, metav1.DeleteOptions{})
		}, "deletes only"},
		{"a PV of a class without the verb batch", batchPod, createPV(attackPV("pvc-"+victimUID, victimUID, w.ns, anExport())), batchOwn},
		{"its own PV, a directory", directoryPod, pv(aDirectory(own, directory)), ""},
		{"a PV that a container describes", theDispatcher, pv(aDirectory(own, corev1.HostPathDirectoryOrCreate)), ""},
		{"the same, not on a node", theDispatcher, pv(anExport()), ""},
		{"a finalizer", theDispatcher, patchPV(w.ns, `{"metadata":{"finalizers":["flex-provisioner.io/storage"]}}`), ""},
		{"a batch's PV for a claim of any class, which no policy knows", batchPod, createPV(attackPV("pvc-"+victimUID, victimUID, batchClass, anExport())), ""},
	})
}

func patchPV(name, change string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, []byte(change), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// No policy knows which namespace and name the claim with a UID has. A PV that names another claim, with the UID of its own,
// is bound to neither: Kubernetes compares UIDs.
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
