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
	without answer // where the admission policies are taken away
}

// answer is what becomes of an attack: the zero value passes, any other is refused in these words. by is what refuses it without our
// policies.
type answer struct{ by, words string }

var (
	passes         = answer{}
	byRBAC         = answer{"RBAC", "cannot "}
	byAccount      = answer{"the admission of ServiceAccounts", "error looking up service account"}
	byNoSuchTarget = answer{"the controller of tokens, which deletes the Secret", "not found"}
)

func (a answer) String() string {
	switch {
	case a == passes:
		return "passes"
	case a.by == "":
		return "refused: " + a.words
	default:
		return "refused by " + a.by + ": " + a.words
	}
}

// is reports whether an attack was answered so.
func (a answer) is(err error) bool {
	if err == nil || a == passes {
		return err == nil && a == passes
	}
	return strings.Contains(err.Error(), a.words)
}

// expected returns what must become of the attack, with the policies or without them.
func (a attack) expected(policies bool) answer {
	switch {
	case a.refusal == "":
		return passes
	case policies:
		return answer{words: a.refusal}
	default:
		return a.without
	}
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
	cinderList    = account(ownNamespace, "cinder-provisioner", "list-"+attackUID+"-1-abcde")
	cinderUnbound = account(ownNamespace, "cinder-provisioner", "")
	directoryPod  = account(nodeNamespace, "directory-provisioner", "provision-"+attackUID+"-1-abcde")
	batchPod      = account(nodeNamespace, "file-server-provisioner", "provision-"+attackUID+"-1-abcde")
	theDispatcher = account(systemNamespace, dispatcher, "")
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

// run tries every request, with the policies or without them, and prints the table.
func (w *world) run(attacks []attack, policies bool) {
	w.t.Helper()
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, "attack\taccount\texpected\tgot")
	for _, a := range attacks {
		expected, err := a.expected(policies), a.try(w.ctx(), w.as(a.as))
		got := passes.String()
		if err != nil {
			got = err.Error()
		}
		if !expected.is(err) {
			w.t.Errorf("%s as %s: expected %s, got %s", a.what, a.as.UserName, expected, got)
		}
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", a.what, strings.TrimPrefix(a.as.UserName, "system:serviceaccount:"), expected, got)
	}
	_ = columns.Flush()
	w.t.Logf("\n%s", out.String())
}

// createSecret makes a Secret in the namespace of configs, of a class that is named after the test.
func (w *world) createSecret(name string, kind corev1.SecretType, change ...func(*corev1.Secret)) func(context.Context, kubernetes.Interface) error {
	return w.createSecretIn(ownNamespace, name, kind, change...)
}

func (w *world) createSecretIn(namespace, name string, kind corev1.SecretType, change ...func(*corev1.Secret)) func(context.Context, kubernetes.Interface) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"storage-class": w.ns}}, Type: kind}
	for _, c := range change {
		c(secret)
	}
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
		return err
	}
}

// removeSecrets deletes at the end what the attacks have made.
func (w *world) removeSecrets() {
	w.remove(func() {
		err := kube.CoreV1().Secrets(ownNamespace).DeleteCollection(w.ctx(), metav1.DeleteOptions{}, labelled("storage-class="+w.ns))
		w.gone(err, "Secrets of the attacks")
	})
}

func deleteSecret(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		return client.CoreV1().Secrets(ownNamespace).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

// readByDelete reads a Secret with the right to delete it: a dry run of a delete in the foreground answers with the object.
func readByDelete(ctx context.Context, client kubernetes.Interface, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	options := &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}, PropagationPolicy: new(metav1.DeletePropagationForeground)}
	err := client.CoreV1().RESTClient().Delete().Namespace(ownNamespace).Resource("secrets").Name(name).Body(options).Do(ctx).Into(secret)
	return secret, err
}

func readSecret(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		secret, err := readByDelete(ctx, client, name)
		if err == nil && len(secret.Data) == 0 {
			err = errors.New("nothing was read")
		}
		return err
	}
}

func getSecret(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Secrets(ownNamespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

// stealToken makes a Secret that kube-controller-manager fills with a token of a ServiceAccount of the namespace, without an end, and reads it.
func (w *world) stealToken(name, account string) func(context.Context, kubernetes.Interface) error {
	create := w.createSecret(name, corev1.SecretTypeServiceAccountToken, asksForToken(account))
	return func(ctx context.Context, client kubernetes.Interface) error {
		if err := create(ctx, client); err != nil {
			return err
		}
		return poll(ctx, 10*time.Second, func(ctx context.Context) error {
			secret, err := readByDelete(ctx, client, name)
			if err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
				err = errors.New("it is not filled")
			}
			return err
		})
	}
}

// chapSecret has what the kubelet reads.
func chapSecret(secret *corev1.Secret) {
	secret.StringData = map[string]string{chapUser: "user", chapPassword: "5d1f0c-of-the-attack"}
}

func labelledFor(key string) func(*corev1.Secret) {
	return func(secret *corev1.Secret) { secret.Labels[key] = attackUID }
}

func ownedByNone(secret *corev1.Secret) { secret.OwnerReferences = ownedBy("Pod") }

// ownedBy is an owner that does not exist, so that the garbage collector deletes what names it.
func ownedBy(kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: "none", UID: attackUID}}
}

func asksForToken(account string) func(*corev1.Secret) {
	return func(secret *corev1.Secret) {
		secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: account}
	}
}

// A stolen token of a provisioner reads no Secret by deleting it, gets no token of another ServiceAccount, and deletes no
// Secret of another claim. What its image needs passes.
func TestProvisionersTokenReachesOnlySecretsOfItsClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "steal-secrets")
	w.run(w.secretAttacks(), true)
}

// secretAttacks makes a login to a storage and the Secret of another claim, and returns the attacks on them. The first changes nothing.
func (w *world) secretAttacks() []attack {
	w.t.Helper()
	w.removeSecrets()
	login, victim, own := w.ns+"-login", "pvc-"+victimUID, "pvc-"+attackUID
	w.must(w.createSecret(login, corev1.SecretTypeOpaque, chapSecret)(w.ctx(), kube), "create a login")
	w.must(w.createSecret(victim, corev1.SecretTypeOpaque)(w.ctx(), kube), "create the Secret of another claim")
	const others, chap = "only the Secrets of its own claim", "kubernetes.io/iscsi-chap"
	generated := func(s *corev1.Secret) { s.GenerateName = own + "-" }
	return []attack{
		{"read a login by a dry run of its delete", cinderPod, readSecret(login), others, passes},
		{"the same", cinderUnbound, readSecret(login), "only a token that is bound to a provisioning pod", passes},
		{"read it with the dispatcher's token", theDispatcher, getSecret(login), "cannot get resource", byRBAC},
		{"a token of another ServiceAccount", cinderPod, w.stealToken(own+"-token", "default"), "no volume needs a Secret of the type", passes},
		{"the same, of another name", cinderPod, w.stealToken(w.ns+"-token", "default"), others, passes},
		{"delete another claim's Secret", cinderPod, deleteSecret(victim), others, passes},
		{"a Secret with a generated name", cinderPod, w.createSecret("", chap, chapSecret, generated), "not a generated one", passes},
		{"the CHAP Secret of its claim", cinderPod, w.createSecret(own, chap, chapSecret), "", passes},
		{"its delete", cinderDelete, deleteSecret(own), "", passes},
		{"read a login by a list", cinderList, readSecret(login), others, passes},
		{"a Secret by a list", cinderList, w.createSecret(own+"-list", corev1.SecretTypeOpaque), others, passes},
		{"a Secret without a type", cinderPod, w.createSecret(own, ""), "", passes},
		{"a release of Helm", cinderPod, w.createSecret(own+"-1", "helm.sh/release.v1", chapSecret), "no volume needs a Secret of the type", passes},
		{"a Secret with labels of Helm", cinderPod, w.createSecret(own+"-2", corev1.SecretTypeOpaque, labelledFor("owner")), "no labels but", passes},
		{"a Secret that is to be copied", cinderPod, w.createSecret(own+"-3", corev1.SecretTypeOpaque, asksForToken("*")), "no annotations", passes},
		{"a Secret with an owner", cinderPod, w.createSecret(own+"-4", corev1.SecretTypeOpaque, ownedByNone), "no owner", passes},
		{"the Secret of a FlexVolume", cinderPod, w.createSecret(own+"-5", flexDriver, labelledFor("flex-provisioner.io/claim-uid")), "", passes},
		{"the same, of a driver that is not listed", cinderPod, w.createSecret(own+"-6", "example.com/driver"), "an administrator lists the names", passes},
	}
}

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

func ownedByNode(pv *corev1.PersistentVolume) { pv.OwnerReferences = ownedBy("Node") }

func finalizedBy(finalizers ...string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Finalizers = finalizers }
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

// A stolen token of a provisioner, or of the dispatcher, creates no PV on a directory of a node but that of the volume, and none that another
// driver, Kubernetes or the dispatcher takes for something else later. What both need passes.
func TestTokensWriteNoPVOfAnotherPathOrClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "steal-pvs")
	w.run(w.pvAttacks(), true)
}

// pvAttacks returns the attacks by new PVs. They change nothing: every policy judges a dry run as well.
func (w *world) pvAttacks() []attack {
	const name, own, path = "pvc-" + attackUID, volumesFolder + "/pvc-" + attackUID, "must be " + volumesFolder + "/pvc-UID"
	directory, batchOwn := corev1.HostPathDirectory, "may write only the PersistentVolume of its own claim"
	pv := func(source corev1.PersistentVolumeSource) func(context.Context, kubernetes.Interface) error {
		return createPV(attackPV(name, attackUID, batchClass, source))
	}
	return []attack{
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
		{"a PV of a class without the verb batch", batchPod, createPV(attackPV("pvc-"+victimUID, victimUID, w.ns, anExport())), batchOwn, passes},
		{"its own PV, a directory", directoryPod, pv(aDirectory(own, directory)), "", passes},
		{"a PV that a container describes", theDispatcher, pv(aDirectory(own, corev1.HostPathDirectoryOrCreate)), "", passes},
		{"the same, not on a node", theDispatcher, pv(anExport()), "", passes},
		{"a batch's PV for a claim of any class, which no policy knows", batchPod, createPV(attackPV("pvc-"+victimUID, victimUID, batchClass, anExport())), "", passes},
	}
}

// A stolen token of a provisioner, or of the dispatcher, marks no PV as something that another driver, Kubernetes or the dispatcher acts upon later.
func TestTokensMarkNoPVForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mark-pvs")
	w.run(w.markAttacks(), true)
}

// markAttacks returns the attacks by what stands on a new PV. They change nothing, as those of pvAttacks.
func (w *world) markAttacks() []attack {
	const revision, by, migrated = "flex-provisioner.io/config-revision", "pv.kubernetes.io/provisioned-by", "pv.kubernetes.io/migrated-to"
	pv := func(change ...func(*corev1.PersistentVolume)) func(context.Context, kubernetes.Interface) error {
		return createPV(attackPV("pvc-"+attackUID, attackUID, w.ns, anExport(), change...))
	}
	whole := []func(*corev1.PersistentVolume){
		annotatedPV(by, "flex-provisioner.io"), finalizedBy("flex-provisioner.io/storage"), reclaimed(corev1.PersistentVolumeReclaimDelete),
	}
	const foreign, owner = "of Kubernetes' annotations", "with no owner"
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
		{"its own PV, of the skeleton", cinderPod, pv(append(whole, annotatedPV(revision, ownNamespace+"/cinder-iscsi-0123456789abcdef"))...), "", passes},
		{"the same", directoryPod, pv(append(whole, annotatedPV(revision, nodeNamespace+"/node-directory-0123456789abcdef"))...), "", passes},
		{"a described PV, of the skeleton", theDispatcher, pv(append(whole, annotatedPV(revision, nodeNamespace+"/node-directory-0123456789abcdef"))...), "", passes},
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
