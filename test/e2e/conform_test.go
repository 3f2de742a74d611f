//go:build e2e && long

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// conformance is what kubectl flex conform prints in JSON.
type conformance struct {
	Namespace string                                            `json:"namespace"`
	Promises  []struct{ Promise, Verdict, Note, Output string } `json:"promises"`
	Left      []string                                          `json:"left"`
}

// of returns the promises with a verdict.
func (c conformance) of(verdict string) string {
	var out []string
	for _, p := range c.Promises {
		if p.Verdict == verdict {
			out = append(out, p.Promise)
		}
	}
	return strings.Join(out, " ")
}

// conform tests the image of a class.
func (w *world) conform(class string, args ...string) (conformance, int) {
	w.t.Helper()
	said, code := w.flex(os.Getenv("KUBECONFIG"), slices.Concat([]string{"conform", class, "--output=json", "--mount=" + bashImage, "--kills=1"}, args)...)
	w.t.Logf("%s", said)
	var c conformance
	text, _, _ := strings.Cut(said, "\nerror: ")
	w.must(json.Unmarshal([]byte(text), &c), "read what conform prints: "+said)
	return c, code
}

// provoked writes a file that says how an image is made to refuse a claim, and returns the flag.
func (w *world) provoked(text string) string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "provoke.txt")
	w.must(os.WriteFile(file, []byte(text), 0o600), "write a file")
	return "--provoke=" + file
}

// mustKeep checks that the image of a class keeps every promise but these, by their verdicts, and that nothing is left.
func (w *world) mustKeep(class string, but map[string]string, args ...string) {
	w.t.Helper()
	c, code := w.conform(class, args...)
	equal(w.t, "the exit code", code, 0)
	for _, verdict := range []string{"BROKEN", "not tested", "failed", "not claimed", "not provoked", "skipped"} {
		equal(w.t, "the promises that are "+verdict, c.of(verdict), but[verdict])
	}
	equal(w.t, "what is left", strings.Join(c.Left, " "), "")
	ns, err := kube.CoreV1().Namespaces().Get(w.ctx(), c.Namespace, metav1.GetOptions{})
	if err == nil && ns.DeletionTimestamp == nil {
		w.t.Errorf("the namespace %s is left", ns.Name)
	}
}

// What kubectl flex new has written keeps every promise before anything in it is changed.
func TestConformOfNewProvisionersKeepsAll(t *testing.T) {
	for kind, name := range map[string]string{"network": "conform-network", "node": "conform-node"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, name)
			only := "--only=provision,provision-pv,delete,provision-again,provision-abandoned,provision-killed," +
				"delete-killed,refuses,undo-refused"
			if kind == "network" {
				w.export(name + "-export")
				only += ",batch"
			}
			dir := w.made(name, kind, "PersistentVolume")
			w.remove(func() { w.removeJobsThatMount(name + "-export") })
			w.mustKeep(name, nil, only, "--provoke="+filepath.Join(dir, "provoke.txt"))
		})
	}
}

// The image keeps every promise but one, of which the key breaks has the name. That one is found, and
// no other: those that need it are not tested.
func TestConformFindsTheOnePromiseThatAnImageBreaks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"nothing", "provision", "provision-pv", "list", "delete", "secret", "provision-again", "provision-abandoned", "provision-killed", "delete-killed",
		"expand", "expand-killed", "refuses", "undo-refused", "bad-config", "bad-credentials", "no-capacity", "batch", "mount", "clone", "quiet",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "breaks")
			w.breaks(name)
			args := []string{w.provoked("{bad-config: {data: {mode: wrong}}, bad-credentials: {data: {login: wrong}}, no-capacity: {data: {room: none}}}")}
			for _, slow := range []string{"provision-killed", "delete-killed", "expand-killed"} {
				if name != "nothing" && name != slow {
					args = append(args, "--skip="+slow+"=another image breaks it")
				}
			}
			if name == "nothing" {
				c, code := w.conform(w.ns, args...)
				equal(t, "the exit code", code, 0)
				equal(t, "how many promises are kept", len(strings.Fields(c.of("kept"))), len(c.Promises))
				return
			}
			c, code := w.conform(w.ns, args...)
			equal(t, "the exit code", code, 1)
			equal(t, "the broken promises", c.of("BROKEN"), name)
			equal(t, "the promises that could not be tested", c.of("failed"), "")
		})
	}
}

// breaks makes a class whose image breaks a promise.
func (w *world) breaks(promise string) {
	w.t.Helper()
	script, err := os.ReadFile("testdata/conforming-provisioner.sh")
	w.must(err, "read the script")
	command, err := yaml.Marshal([]string{"/bin/bash", "-c", string(script), "provision"})
	w.must(err, "encode the script")
	own := volumesFolder + "/." + w.ns
	w.remove(func() { w.mustOnNode("1", "cd "+volumesFolder+"; rm -rf $(ls "+own+"/notes 2>/dev/null) "+own) })
	w.batchAccount()
	w.class(w.ns, expandable, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	data := onItsNode(map[string]string{
		"verbs": "provision,delete,expand,list", "data-sources": "PersistentVolumeClaim", "batch-size": "8", "run-on": "any", "timeout": "2m",
		"node-selector": corev1.LabelHostname + "=node1", "service-account-name": w.ns, "env-from-secret": w.ns, "own": own, "breaks": promise,
	})
	delete(data, "base-dir")
	delete(data, "script")
	data["image"] = bashImage
	data["pod-template"] = strings.Replace(data["pod-template"], "- name: provisioner\n", "- name: provisioner\n      command:\n"+indented(string(command), 8), 1)
	w.config(nodeNamespace, w.ns, data)
	w.remove(w.retryAll)
}

// retryAll lets what the image has refused once be tried again at once: the pause would outlast the tests.
func (w *world) retryAll() {
	w.t.Helper()
	w.eventually(toBind, "every record of the class to be released", func(ctx context.Context) error {
		jobs, err := kube.BatchV1().Jobs(nodeNamespace).List(ctx, all)
		if err != nil {
			return err
		}
		for _, job := range jobs.Items {
			if released(job) || variable(job, "FLEX_STORAGE_CLASS") != w.ns {
				continue
			}
			_, err := kube.BatchV1().Jobs(nodeNamespace).Patch(ctx, job.Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"flex-provisioner.io/retry":"now"}}}`), metav1.PatchOptions{})
			return errors.Join(err, errors.New(job.Name+" is held"))
		}
		return nil
	})
}

// batchAccount makes a ServiceAccount whose pods write the PersistentVolumes of batches, and Secrets, and a
// Secret for their logins.
func (w *world) batchAccount() {
	w.t.Helper()
	named, subjects := metav1.ObjectMeta{Name: w.ns}, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: nodeNamespace, Name: w.ns}}
	bind := func(name, role string) {
		_, err := kube.RbacV1().ClusterRoleBindings().Create(w.ctx(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: subjects,
		}, metav1.CreateOptions{})
		w.must(err, "bind a role")
		w.remove(func() {
			w.gone(kube.RbacV1().ClusterRoleBindings().Delete(w.ctx(), name, metav1.DeleteOptions{}), name)
		})
	}
	_, err := kube.CoreV1().ServiceAccounts(nodeNamespace).Create(w.ctx(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns, Labels: map[string]string{"flex-provisioner.io/provisioner": "true"}},
	}, metav1.CreateOptions{})
	w.must(err, "create the ServiceAccount")
	_, err = kube.CoreV1().Secrets(nodeNamespace).Create(w.ctx(), &corev1.Secret{ObjectMeta: named, StringData: map[string]string{"PASSWORD": "a-password-of-" + w.ns}}, metav1.CreateOptions{})
	w.must(err, "create the Secret")
	_, err = kube.RbacV1().ClusterRoles().Create(w.ctx(), &rbacv1.ClusterRole{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"flex-provisioner.io"}, Resources: []string{"classes"}, ResourceNames: []string{w.ns}, Verbs: []string{"batch"}},
	}}, metav1.CreateOptions{})
	w.must(err, "create the ClusterRole")
	_, err = kube.RbacV1().Roles(nodeNamespace).Create(w.ctx(), &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "delete"}},
	}}, metav1.CreateOptions{})
	w.must(err, "create the Role")
	_, err = kube.RbacV1().RoleBindings(nodeNamespace).Create(w.ctx(), &rbacv1.RoleBinding{
		ObjectMeta: named, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: w.ns}, Subjects: subjects,
	}, metav1.CreateOptions{})
	w.must(err, "bind the Role")
	w.remove(func() {
		now := metav1.DeleteOptions{}
		w.gone(kube.CoreV1().ServiceAccounts(nodeNamespace).Delete(w.ctx(), w.ns, now), "the ServiceAccount")
		w.gone(kube.CoreV1().Secrets(nodeNamespace).Delete(w.ctx(), w.ns, now), "the Secret")
		w.gone(kube.RbacV1().ClusterRoles().Delete(w.ctx(), w.ns, now), "the ClusterRole")
		w.gone(kube.RbacV1().Roles(nodeNamespace).Delete(w.ctx(), w.ns, now), "the Role")
		w.gone(kube.RbacV1().RoleBindings(nodeNamespace).Delete(w.ctx(), w.ns, now), "the RoleBinding")
	})
	bind(w.ns, "flex-provisioner-volumes")
	bind(w.ns+"-batch", w.ns)
}
