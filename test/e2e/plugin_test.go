//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// pluginBinary is what kubectl runs for kubectl flex.
const pluginBinary = "../../bin/kubectl-flex"

// further is the beginning of a further line of a message.
var further = regexp.MustCompile(`\n {7,}`)

// flex runs a command of the plugin in the test's namespace, and returns what it prints, each message
// in one line, and its exit code.
func (w *world) flex(kubeconfig string, args ...string) (string, int) {
	w.t.Helper()
	return w.flexWithin(w.ctx(), kubeconfig, args...)
}

func (w *world) flexWithin(ctx context.Context, kubeconfig string, args ...string) (string, int) {
	w.t.Helper()
	cmd := exec.CommandContext(ctx, pluginBinary, append(args, "--kubeconfig="+kubeconfig, "--namespace="+w.ns)...)
	var out []byte
	var err error
	if slices.Contains(args, "--output=json") { // client-go may log a watch that ends with the command
		out, err = cmd.Output()
	} else {
		out, err = cmd.CombinedOutput()
	}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return further.ReplaceAllString(string(out), " "), cmd.ProcessState.ExitCode()
}

// The administrator sees the chain from the claim to its Jobs, with cause and remedy at the end. What
// has been corrected is tried at once.
func TestKubectlFlexSaysWhyAClaimIsNotBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "plugin")
	admin := os.Getenv("KUBECONFIG")
	class, cm := w.service(scripted(deletes+`echo "looking for the filer" >&2; echo "claim: the filer refuses the login"; exit 77`, nil))
	claim := w.claim(class, "data")
	w.failed(claim, 1, toBind)

	said, code := w.flex(admin, "why", claim.Name)
	equal(t, "the exit code of why", code, 1)
	last := lastLines(said, 3)
	for _, words := range []string{"the filer refuses the login", "CredentialsRefused", "kubectl flex retry", "attempt 2, in"} {
		contains(t, "the last lines of why", last, words)
	}
	said, code = w.flex(admin, "logs", claim.Name)
	equal(t, "the exit code of logs", code, 0)
	contains(t, "the logs", said, "looking for the filer")

	said, code = w.flex(admin, "status", class, "--output=json")
	equal(t, "the exit code of status", code, 1)
	var status struct {
		Classes []struct {
			Pending int `json:"pending"`
			Causes  []struct {
				Claims int    `json:"claims"`
				Cause  string `json:"cause"`
			} `json:"causes"`
		} `json:"classes"`
	}
	w.must(json.Unmarshal([]byte(said), &status), "read the status: "+said)
	if len(status.Classes) != 1 || status.Classes[0].Pending != 1 || len(status.Classes[0].Causes) != 1 {
		t.Fatalf("the status is %s", said)
	}
	contains(t, "the cause in the status", status.Classes[0].Causes[0].Cause, "the filer refuses the login")

	said, code = w.flex(admin, "retry", claim.Name)
	equal(t, "the exit code of retry: "+said, code, 0)
	w.failed(claim, 2, toBind)
	w.edit(cm, scripted(deletes+offer, nil))
	w.bound(claim)
	said, code = w.flex(admin, "why", claim.Name)
	equal(t, "the exit code of why: "+said, code, 0)
	contains(t, "why of a bound claim", said, "pvc-"+string(claim.UID))
}

// An administrator looks after a class: its revisions, what is orphaned, and what would stay behind.
func TestKubectlFlexLooksAfterAClass(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "plugin-class")
	admin := os.Getenv("KUBECONFIG")
	class, cm := w.service(scripted(deletes+offer, nil))
	first := w.claim(class, "first")
	old := w.bound(first)
	w.edit(cm, scripted(deletes+offer+"true\n", map[string]string{"max-parallel": "3"}))
	w.bound(w.claim(class, "second"))

	said, code := w.flex(admin, "history", class)
	equal(t, "the exit code of history: "+said, code, 0)
	equal(t, "the lines of the history: "+said, strings.Count(said, "\n"), 3)
	w.eventually(toBind, "the volume to be moved", func(ctx context.Context) error {
		if said, code := w.flexWithin(ctx, admin, "move", old.Name, "--to=newest"); code != 0 {
			return errors.New(said)
		}
		return nil
	})
	moved := w.pv(first).Annotations["flex-provisioner.io/config-revision"]
	equal(t, "the volume has its old revision", moved == old.Annotations["flex-provisioner.io/config-revision"], false)

	said, code = w.flex(admin, "audit")
	equal(t, "the audit could look: "+said, code < 2, true)
	said, code = w.flex(admin, "uninstall", "--provisioner-name="+w.ns+".example.com")
	equal(t, "the exit code of uninstall where nothing is: "+said, code, 0)
}

// A user may read the claim and its events, and nothing of the storage.
func TestKubectlFlexSaysToAUserWhatTheClaimSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "plugin-user")
	class, _ := w.service(scripted(deletes+`echo "claim: the filer has no room"; exit 73`, nil))
	claim := w.claim(class, "data")
	w.event(claim, "ProvisioningFailed", "the filer has no room")
	w.userWhoReads("persistentvolumeclaims", "events")
	user := w.kubeconfigOf("user")

	said, code := w.flex(user, "why", claim.Name)
	equal(t, "the exit code of why", code, 1)
	contains(t, "why", said, "the filer has no room")
	contains(t, "why", said, "remedy  free space in the storage")
	contains(t, "why", said, "you may not read")
	for _, verb := range []string{"retry", "logs"} {
		said, code = w.flex(user, verb, claim.Name)
		equal(t, "the exit code of "+verb, code, 2)
		contains(t, verb, said, "ask an administrator")
	}
}

// userWhoReads makes the ServiceAccount user, which may read these kinds in the test's namespace.
func (w *world) userWhoReads(resources ...string) {
	w.t.Helper()
	_, err := kube.CoreV1().ServiceAccounts(w.ns).Create(w.ctx(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "user"}}, metav1.CreateOptions{})
	w.must(err, "create a user")
	_, err = kube.RbacV1().Roles(w.ns).Create(w.ctx(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "user"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "list"}}},
	}, metav1.CreateOptions{})
	w.must(err, "create a role")
	_, err = kube.RbacV1().RoleBindings(w.ns).Create(w.ctx(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "user"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "user"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.ns, Name: "user"}},
	}, metav1.CreateOptions{})
	w.must(err, "bind the role")
}

// A config is judged as the dispatcher judges it, before it is applied.
func TestKubectlFlexFindsTheFaultsOfAConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "plugin-validate")
	for key, want := range map[string]int{"max-parallel": 0, "maxparallel": 1} {
		text, err := yaml.Marshal(&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: "filer", Namespace: ownNamespace, Labels: map[string]string{"type": "provisioner-config", "storage-class": "gold"}},
			Data:       scripted(deletes+offer, map[string]string{key: "3"}),
		})
		w.must(err, "encode the config")
		cmd := exec.CommandContext(w.ctx(), pluginBinary, "validate", "--filename=-")
		cmd.Stdin = bytes.NewReader(text)
		out, _ := cmd.CombinedOutput() // the exit code says as much
		equal(t, "the exit code of validate: "+string(out), cmd.ProcessState.ExitCode(), want)
	}
}

// What the dispatcher certainly refuses is refused when it is applied. The rest is its to judge.
func TestGrossFaultsOfAConfigAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "gross-faults")
	for name, tt := range map[string]struct {
		change  map[string]string
		refused string
	}{
		"no image":               {map[string]string{"image": " "}, "needs the key image"},
		"no program at all":      {map[string]string{"image": "", "script": ""}, "or the key script"},
		"a script":               {map[string]string{"image": "", "script": "#!/bin/bash\ntrue\n"}, ""},
		"no first line":          {map[string]string{"script": "set -e\ntrue\n"}, "the first line of the key script must be #!"},
		"a byte order mark":      {map[string]string{"script": "\ufeff#!/bin/bash\ntrue\n"}, "no byte order mark"},
		"lines of Windows":       {map[string]string{"script": "#!/bin/bash\r\ntrue\r\n"}, "CR LF"},
		"folded lines":           {map[string]string{"script": "#!/bin/bash true\n"}, "write script: |"},
		"a script that is long":  {map[string]string{"script": "#!/bin/bash\n" + strings.Repeat("#", 32<<10)}, "at most 32768 bytes"},
		"the longest script":     {map[string]string{"image": "", "script": "#!/bin/bash\n" + strings.Repeat("#\n", 16<<10-6)}, ""},
		"an unknown verb":        {map[string]string{"verbs": "provision,remove"}, "may list delete"},
		"no provision":           {map[string]string{"verbs": "delete"}, "must list provision"},
		"a word that is none":    {map[string]string{"run-on": "selectednode"}, "the key run-on must be one of any, selected-node"},
		"a number that is none":  {map[string]string{"max-parallel": "twenty"}, "must be numbers"},
		"blanks around words":    {map[string]string{"verbs": " provision, delete\n", "run-on": "any\n", "max-parallel": "3\n"}, ""},
		"a fault of another key": {map[string]string{"maxparallel": "3"}, ""},
	} {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: w.ns, Labels: map[string]string{"type": "provisioner-config", "storage-class": w.ns}},
			Data:       scripted(deletes+offer, tt.change),
		}
		_, err := kube.CoreV1().ConfigMaps(ownNamespace).Create(w.ctx(), cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case tt.refused == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
			t.Errorf("%s: got %v, want %q", name, err, tt.refused)
		}
		delete(cm.Labels, "type")
		_, err = kube.CoreV1().ConfigMaps(ownNamespace).Create(w.ctx(), cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		w.must(err, name+": a ConfigMap that is no config")
	}
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns, Labels: map[string]string{"type": "provisioner-config", "storage-class": w.ns}},
		Data:       scripted(deletes+offer, nil),
		BinaryData: map[string][]byte{"script": []byte("#!/bin/bash\n# \xff\n")},
	}
	delete(cm.Data, "script")
	_, err := kube.CoreV1().ConfigMaps(ownNamespace).Create(w.ctx(), cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil || !strings.Contains(err.Error(), "save the file as UTF-8") {
		t.Errorf("a script that is not UTF-8: %v", err)
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}
