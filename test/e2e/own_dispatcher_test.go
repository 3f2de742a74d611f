//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shippedAccount makes a ServiceAccount for the test's own dispatchers, with the permissions that
// are shipped and no others, and returns its kubeconfig. Its further config namespaces are not
// bound yet: bindConfigs.
func (w *world) shippedAccount() string {
	w.t.Helper()
	if w.shipped == "" {
		w.makeShippedAccount()
		w.shipped = w.kubeconfigOf(dispatcher)
	}
	return w.shipped
}

func (w *world) makeShippedAccount() {
	w.t.Helper()
	_, err := kube.CoreV1().ServiceAccounts(w.ns).Create(w.ctx(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: dispatcher}}, metav1.CreateOptions{})
	w.must(err, "create the dispatcher's ServiceAccount")
	name := w.ns + "-dispatcher"
	_, err = kube.RbacV1().ClusterRoleBindings().Create(w.ctx(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: dispatcher},
		Subjects:   []rbacv1.Subject{w.ownSubject()},
	}, metav1.CreateOptions{})
	w.must(err, "bind the dispatcher's ClusterRole")
	w.remove(func() {
		w.gone(kube.RbacV1().ClusterRoleBindings().Delete(w.ctx(), name, metav1.DeleteOptions{}), "ClusterRoleBinding "+name)
	})
	w.bindConfigs(w.ns)
	shipped, err := kube.RbacV1().Roles(systemNamespace).Get(w.ctx(), "flex-dispatcher-lease", metav1.GetOptions{})
	w.must(err, "read the role of the lease")
	_, err = kube.RbacV1().Roles(w.ns).Create(w.ctx(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: shipped.Name}, Rules: shipped.Rules}, metav1.CreateOptions{})
	w.must(err, "create the role of the lease")
	w.bindIn(w.ns, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: shipped.Name})
	for _, last := range []authorizationv1.ResourceAttributes{
		{Verb: "patch", Resource: "persistentvolumes"},
		{Verb: "create", Group: "batch", Resource: "jobs", Namespace: w.ns},
		{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: w.ns, Name: dispatcher},
	} {
		w.untilAllowed(last)
	}
}

// untilAllowed waits until the API server's caches show the roles of the test's own dispatcher.
func (w *world) untilAllowed(what authorizationv1.ResourceAttributes) {
	w.t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: serviceAccount(w.ns, dispatcher), ResourceAttributes: &what,
	}}
	w.eventually(toBind, "the dispatcher's roles to be in force", func(ctx context.Context) error {
		answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err == nil && !answer.Status.Allowed {
			err = fmt.Errorf("it may not %s %s", what.Verb, what.Resource)
		}
		return err
	})
}

func (w *world) ownSubject() rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Name: dispatcher, Namespace: w.ns}
}

// configsRole is the ClusterRole that is bound in each config namespace.
const configsRole = "flex-dispatcher-configs"

// bindConfigs lets the test's own dispatcher serve a config namespace.
func (w *world) bindConfigs(namespace string) {
	w.t.Helper()
	w.bindIn(namespace, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: configsRole})
}

// bindIn gives the test's own dispatcher a role in a namespace. The binding has the role's name,
// and is deleted with the namespace.
func (w *world) bindIn(namespace string, role rbacv1.RoleRef) {
	w.t.Helper()
	_, err := kube.RbacV1().RoleBindings(namespace).Create(w.ctx(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: role, Subjects: []rbacv1.Subject{w.ownSubject()},
	}, metav1.CreateOptions{})
	w.must(err, "bind the role "+role.Name+" in "+namespace)
}

// pvWriter makes a ServiceAccount in the test's namespace that configs may name, and that may write
// PVs.
func (w *world) pvWriter() string {
	w.t.Helper()
	const name = "writer"
	_, err := kube.CoreV1().ServiceAccounts(w.ns).Create(w.ctx(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"flex-provisioner.io/provisioner": "true"}},
	}, metav1.CreateOptions{})
	w.must(err, "create the provisioner's ServiceAccount")
	w.bindVolumes(rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: w.ns})
	return name
}

// volumesFolder is where hostPath tests work, a directory of its own on each node.
const volumesFolder = "/var/lib/flex-volumes"

// makesDirectories begins a script: the volume is a directory of the node.
const makesDirectories = `dir=` + volumesFolder + `/$FLEX_PV_NAME
[ $FLEX_VERB != delete ] || { flex empty "$dir"; exit 0; }
mkdir -p "$dir"
`

// writesPV continues it: the container writes the PV itself, with a change such as
// `,"metadata":{…}`.
func writesPV(change string) string {
	return `kubectl patch --local -f /etc/flex/pv.json --type=merge -o json -p '{"spec":{"hostPath":{"path":"'"$dir"'","type":"DirectoryOrCreate"}}` + change + `}' |
  kubectl create -f - || kubectl get pv "$FLEX_PV_NAME"
`
}

// directoriesOfNodes starts a dispatcher of the test's own that lets the configs of the test's
// namespace make directories on nodes.
func (w *world) directoriesOfNodes() *process {
	w.t.Helper()
	return w.started(w.allowDirectories()...)
}

func (w *world) allowDirectories() []string {
	return []string{
		"--allow=" + w.ns + "/host-path=" + volumesFolder, "--allow=" + w.ns + "/run-as-user=0", "--allow=" + w.ns + "/capability=DAC_OVERRIDE", "--allow=" + w.ns + "/capability=FOWNER",
	}
}

// directoryService makes a class of the test's own dispatcher, and a config that runs a script as
// root with the node's directories mounted. The container writes the PV itself.
func (w *world) directoryService(script string, more map[string]string, change ...func(*storagev1.StorageClass)) string {
	w.t.Helper()
	w.class(w.ns, append(change, w.oursAlone)...)
	data := scripted(script, map[string]string{"write-pv": "container", "service-account-name": w.pvWriter()}, mountsDirectories)
	maps.Copy(data, more)
	w.config(w.ns, w.ns, data)
	return w.ns
}

// mountsDirectories runs a template's container as root with the node's directories mounted.
func mountsDirectories(p *corev1.PodTemplateSpec) {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(false), RunAsUser: new(int64(0)), RunAsGroup: new(int64(0))}
	container := &p.Spec.Containers[0]
	container.SecurityContext = &corev1.SecurityContext{
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: []corev1.Capability{"DAC_OVERRIDE", "FOWNER"}},
	}
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "volumes", MountPath: volumesFolder})
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "volumes", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: volumesFolder, Type: new(corev1.HostPathDirectoryOrCreate)},
	}})
}

// retain sets a class's policy to Retain.
func retain(class *storagev1.StorageClass) {
	class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
}
