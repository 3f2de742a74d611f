//go:build e2e

package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// lookedUp are the pages whose commands are for one situation each. Those of the pages that are
// followed from top to bottom are run by hack/run-docs.sh.
var lookedUp = []string{"troubleshoot", "configuration", "kubectl-flex", "operate", "upgrade", "clusters"}

// elsewhere are commands of these pages that do not run here, and why.
var elsewhere = map[string]string{
	"kubectl flex try my-filer.yaml login.yaml --yes --provoke=provoke.txt": "the login is the reader's",
	"kubectl flex conform gold": "TestConformOfRecipesKeepsAll",
	"kubectl flex conform gold --mount=registry.example/busybox:1 --provoke=provoke.txt":                                          "TestConformOfRecipesKeepsAll",
	"kubectl kustomize overlay | kubectl flex validate --filename=-":                                                              "the overlay is the reader's",
	"kubectl kustomize deploy/node-directories | kubectl flex validate --filename=- --filename=configmaps/node-directory.yaml":    "TestTheShippedConfigsAreValid",
	"kubectl kustomize deploy/node-directories | kubectl flex render --filename=- --filename=my-disks.yaml --filename=claim.yaml": "my-disks.yaml is the reader's",
	"kubectl delete namespace --selector=flex-provisioner.io/conform":                                                             "it may meet TestConform at work",
	"make build": "a checkout is built by it",
	"install bin/kubectl-flex /usr/local/bin/ # as root":                                                      "it changes this machine",
	`printf '#!/bin/sh\nexec kubectl-flex __complete "$@"\n' >/usr/local/bin/kubectl_complete-flex # as root`: "it changes this machine",
	"chmod +x /usr/local/bin/kubectl_complete-flex":                                                           "it changes this machine",
	"iscsiadm --mode=session --rescan":                                                                        "of a node with an iSCSI session",
	"findmnt --output=SOURCE,TARGET,FSTYPE":                                                                   "of a node with an iSCSI session",
	"resize2fs DEVICE":                                                                                        "of a node with an iSCSI session",
	"xfs_growfs MOUNTPOINT":                                                                                   "of a node with an iSCSI session",
}

// answers are what commands say here that do not succeed: this cluster does not have the situation
// that they are for.
var answers = map[string]string{
	"kubectl get referencegrants.gateway.networking.k8s.io --namespace=SOURCENAMESPACE": "the server doesn't have a resource type",
	"kubectl get crd referencegrants.gateway.networking.k8s.io":                         "(NotFound)",
	"kubectl taint nodes NODE node.kubernetes.io/out-of-service-":                       "not found",
	"kubectl logs --namespace=flex-system POD --previous":                               "(NotFound)",
	"kubectl create serviceaccount SERVICEACCOUNT --namespace=CONFIGNAMESPACE":          "already exists",
	"kubectl create rolebinding flex-dispatcher-configs --namespace=CONFIGNAMESPACE --clusterrole=flex-dispatcher-configs --serviceaccount=flex-system:flex-dispatcher": "already exists",
	"kubectl flex retry CLAIM --namespace=NAMESPACE":                 "no attempt waits for the end of a pause",
	"kubectl flex retry data --namespace=shop":                       "no attempt waits for the end of a pause",
	"kubectl flex retry pv/PV":                                       "no attempt waits for the end of a pause",
	"kubectl flex retry pv/pvc-6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50": "no attempt waits for the end of a pause",
	"kubectl flex audit --storage=CLASS":                             "does not have list among its verbs",
	"kubectl flex audit --storage=gold":                              "does not have list among its verbs",
	"kubectl flex undelete NAMESPACE/CLAIM":                          "no PersistentVolume is Released",
	"kubectl flex undelete PV":                                       "only a volume that is Released can be given to a claim",
	"kubectl flex status gold --volumes":                             "does not have list among its verbs",
	"kubectl flex uninstall":                                         "run the command again with --yes",
	// The lab has no audit of its own.
	"kubectl logs --namespace=flex-system deployment/flex-dispatcher-audit": "(NotFound)",
}

// dry are the commands of kubectl that change something. Here they change nothing, and the API
// server, with its policies, judges them all the same.
var dry = []string{"annotate", "label", "patch", "delete", "create", "apply", "taint"}

// Each command of a remedy is understood by kubectl and by the API server, with the names of things
// that exist: no flag, resource or field of it is wrong, and no policy refuses what a page advises.
func TestTheCommandsOfRemediesAreUnderstood(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "pages")
	_, cm := w.service(scripted(deletes+offer, nil), func(class *storagev1.StorageClass) { class.AllowVolumeExpansion = new(true) })
	claim := w.claim(w.ns, "data")
	names := w.examples(cm, claim, w.bound(claim))
	bin, err := filepath.Abs("../../bin")
	w.must(err, "find the plugin")
	cluster, err := filepath.Abs("../cluster/kubectl.sh")
	w.must(err, "find kubectl")
	dir, listed := t.TempDir(), maps.Clone(answers)
	maps.Copy(listed, elsewhere)
	for _, page := range lookedUp {
		for _, command := range commandsOf(w, "../../docs/"+page+".md") {
			delete(listed, command)
			if elsewhere[command] != "" {
				continue
			}
			var cmd *exec.Cmd
			var out []byte
			for range 5 { // one that lists Jobs may find that another test's no longer exists when it comes to it
				cmd = exec.CommandContext(w.ctx(), "bash", "-c", "kubectl() { "+cluster+` "$@"; }; `+inTheLab(names, command))
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBE_EDITOR=true")
				if out, err = cmd.CombinedOutput(); err == nil || !strings.Contains(command, "--selector=") {
					break
				}
			}
			answer, differs := answers[command]
			switch {
			case differs:
				if err == nil || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), answer) {
					t.Errorf("%s: %s: %v, and not %q\n%s", page, command, err, answer, out)
				}
			case strings.HasPrefix(command, "kubectl flex ") && cmd.ProcessState.ExitCode() == 1: // it found something
			case err != nil:
				t.Errorf("%s: %s: %v\n%s", page, command, err, out)
			}
		}
	}
	for command := range listed {
		t.Errorf("no page has the command %s", command)
	}
}

// examples returns what the names of the pages are here.
func (w *world) examples(cm *corev1.ConfigMap, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) []string {
	w.t.Helper()
	job := w.onlyJob(claim, "provision")
	pod := w.onlyPod(job)
	dir := w.t.TempDir()
	write := func(name string, text []byte) string {
		w.must(os.WriteFile(filepath.Join(dir, name), text, 0o600), "write an example")
		return filepath.Join(dir, name)
	}
	config := cm.DeepCopy()
	config.APIVersion, config.Kind = "v1", "ConfigMap"
	config.ResourceVersion, config.UID = "", ""
	text, err := yaml.Marshal(config)
	w.must(err, "write the ConfigMap")
	request, err := yaml.Marshal(claim)
	w.must(err, "write the claim")
	class, err := yaml.Marshal(map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": w.ns}, "provisioner": "flex-provisioner.io"})
	w.must(err, "write the class")
	file := write("config.yaml", append(append(text, "---\n"...), class...))
	_, revision, _ := strings.Cut(pv.Annotations["flex-provisioner.io/config-revision"], "/")
	return []string{
		"--from-env-file=FILE", "--from-env-file=" + write("env", []byte("KEY=value\n")), "FILE", file,
		"my-filer.yaml", file, "claim.yaml", write("claim.yaml", append([]byte("apiVersion: v1\nkind: PersistentVolumeClaim\n"), request...)),
		"CONFIGNAMESPACE", cm.Namespace, "SOURCENAMESPACE", w.ns, "NAMESPACES", w.ns, "NAMESPACE", w.ns, "shop", w.ns,
		"CONFIGMAP", cm.Name, "OTHERCLASS", "other", "OTHER", cm.Name, "CLASS", w.ns, "gold silver", w.ns, "gold", w.ns,
		"CLAIM", claim.Name, "SOURCE", claim.Name, "PV", pv.Name, "pvc-6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50", pv.Name,
		"REVISION", revision, "JOB", job.Name, "POD", pod.Name, "UID", string(claim.UID), "SERVICEACCOUNT", "default",
		"LABEL=VALUE", "label=value", "NODE", pod.Spec.NodeName, "NUMBER", "2", "VERBS", "provision,delete", "SIZE", "2Gi", "SECRET", "pages", "NAME", "pages",
		"REGISTRY/IMAGE:TAG", "localhost/image:tag",
	}
}

// inTheLab returns a command of a page as it is run here.
func inTheLab(names []string, command string) string {
	words := strings.Fields(command)
	command = strings.NewReplacer(names...).Replace(command)
	if slices.ContainsFunc(dry, func(verb string) bool { return words[1] == verb }) {
		command += " --dry-run=server"
	}
	return command
}

var bashBlock = regexp.MustCompile("\n *```bash\n")

// commandsOf returns the lines of a page's blocks that are marked bash, without comments.
func commandsOf(w *world, page string) []string {
	w.t.Helper()
	text, err := os.ReadFile(page)
	w.must(err, "read a page")
	var out []string
	for _, block := range bashBlock.Split(string(text), -1)[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !slices.Contains(out, line) {
				out = append(out, line)
			}
		}
	}
	if len(out) == 0 {
		w.t.Fatalf("%s has no commands", page)
	}
	return out
}
