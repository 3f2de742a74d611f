//go:build e2e

package chart

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// releaseValues are those of the release in the lab. The class is that of the README, with fewer
// slots, so that claims wait while the dispatchers are replaced.
const releaseValues = `
configNamespaces: {team-a: {}}
nodeDirectories: {enabled: true}
extraArgs: [--v=2]
classes:
  cinder-iscsi:
    reclaimPolicy: Delete
    parameters: {type: lvm, fsType: ext4}
    config:
      image: localhost/cinder-provisioner:dev
      verbs: provision,delete
      service-account-name: cinder-provisioner
      node-selector: node-restriction.kubernetes.io/flex-storage-network=true
      files-from-secret: cinder
      max-parallel: 2
`

const many = 12

// lab runs commands against the lab's cluster. HELM is Helm's binary.
type lab struct {
	*testing.T

	values string
}

func (l lab) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	return string(out), err
}

func (l lab) run(name string, args ...string) string {
	l.Helper()
	out, err := l.try(name, args...)
	if err != nil {
		l.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return out
}

func (l lab) kubectl(args ...string) string {
	l.Helper()
	return l.run(repository+"/test/cluster/kubectl.sh", args...)
}

// helm runs a command of Helm on the release, and waits until its pods are ready.
func (l lab) helm(command string, args ...string) {
	l.Helper()
	began := time.Now()
	out := l.run(os.Getenv("HELM"), append([]string{command, "flex", "--namespace", namespace, "--wait", "--timeout", "4m"}, args...)...)
	l.Logf("helm %s: %.1f s", command, time.Since(began).Seconds())
	if command == "install" && !strings.Contains(out, "kubectl flex uninstall --yes") {
		l.Errorf("it does not say how to uninstall:\n%s", out)
	}
}

func (l lab) install(args ...string) {
	l.Helper()
	l.helm("install", append([]string{repository + "/deploy/chart", "--values", l.values}, args...)...)
	l.run(repository + "/hack/cinder-secret.sh")
}

// claims creates claims, and does not wait for them.
func (l lab) claims(names ...string) {
	l.Helper()
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %s, namespace: default}
spec: {storageClassName: cinder-iscsi, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, name)
	}
	file := filepath.Join(l.TempDir(), "claims.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		l.Fatal(err)
	}
	l.kubectl("create", "--filename", file)
}

// named returns names of claims.
func named(prefix string) []string {
	var out []string
	for i := range many {
		out = append(out, fmt.Sprintf("%s-%d", prefix, i))
	}
	return out
}

func (l lab) bound(names ...string) {
	l.Helper()
	for _, name := range names {
		l.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "--timeout=4m", "pvc/"+name)
	}
}

// volumes checks how many PersistentVolumes there are: a claim that was provisioned twice would have
// more.
func (l lab) volumes(want int) {
	l.Helper()
	if got := strings.Fields(l.kubectl("get", "pv", "--output=name")); len(got) != want {
		l.Errorf("there are %d PersistentVolumes, want %d: %q", len(got), want, got)
	}
}

// deployed checks image and replicas of the dispatcher.
func (l lab) deployed(want string) {
	l.Helper()
	const what = "--output=jsonpath={.spec.template.spec.containers[0].image} {.status.readyReplicas}"
	if got := l.kubectl("get", "deployment", "flex-dispatcher", "--namespace", namespace, what); got != want {
		l.Errorf("the dispatcher is %s, want %s", got, want)
	}
}

// A release is installed, upgraded and rolled back while claims are provisioned and deleted, and
// uninstalled while a claim is bound. What is kept is what that claim's volume needs, and a second
// installation serves it.
func TestReleaseInTheLab(t *testing.T) {
	l := lab{t, filepath.Join(t.TempDir(), "values.yaml")}
	if err := os.WriteFile(l.values, []byte(releaseValues), 0o600); err != nil {
		t.Fatal(err)
	}
	l.kubectl("create", "namespace", namespace)
	l.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
	l.install()
	l.underLoad(
		func() {
			l.helm("upgrade", repository+"/deploy/chart", "--values", l.values, "--set", "image.tag=next,replicas=3")
		},
		func() { l.helm("rollback", "1") },
	)
	l.guardsTheOtherNamespace()

	l.uninstall(1)
	l.onlyWhatIsKept()
	l.bound("kept")

	l.install()
	l.kubectl("delete", "pvc", "kept")
	l.noVolumesBut(0)
	l.uninstall(0)
	l.kubectl("delete", "namespace", "flex-provisioner", "flex-provisioner-node", "team-a", namespace, "--timeout=3m")
}

// underLoad upgrades an installation that has two replicas of the image dev to three of the image
// next while claims are provisioned, and goes back while they are deleted. The claim "kept" stays.
func (l lab) underLoad(upgrade, back func()) {
	l.Helper()
	l.deployed("localhost/flex-dispatcher:dev 2")
	l.claims("kept")
	l.bound("kept")

	l.claims(named("a")...)
	upgrade()
	l.deployed("localhost/flex-dispatcher:next 3")
	l.claims(named("b")...)
	l.bound(append(named("a"), named("b")...)...)
	l.volumes(2*many + 1)

	l.kubectl(append([]string{"delete", "pvc", "--wait=false"}, named("a")...)...)
	back()
	l.deployed("localhost/flex-dispatcher:dev 2")
	l.kubectl(append([]string{"delete", "pvc", "--wait=false"}, named("b")...)...)
	l.noVolumesBut(1)
}

// guardsTheOtherNamespace checks that the policies of the release judge the namespace of its values.
func (l lab) guardsTheOtherNamespace() {
	l.Helper()
	file := filepath.Join(l.TempDir(), "config.yaml")
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: team-a, labels: {type: provisioner-config}}\ndata: {verbs: provision}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		l.Fatal(err)
	}
	if out, err := l.try(repository+"/test/cluster/kubectl.sh", "create", "--filename", file); err == nil || !strings.Contains(out, "needs the key image") {
		l.Errorf("a config without an image in team-a: %v, %s", err, out)
	}
}

// noVolumesBut waits until only so many PersistentVolumes exist.
func (l lab) noVolumesBut(want int) {
	l.Helper()
	for end := time.Now().Add(4 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		if len(strings.Fields(l.kubectl("get", "pv", "--output=name"))) == want {
			return
		}
	}
	l.Fatalf("other PersistentVolumes than %d: %s", want, l.kubectl("get", "pv"))
}

// uninstall follows what the notes of the chart say, with so many volumes in the storage.
func (l lab) uninstall(volumes int) {
	l.Helper()
	l.endDispatcher(volumes)
	l.helm("uninstall")
}

// endDispatcher ends the dispatcher, and removes its finalizers from what is there.
func (l lab) endDispatcher(volumes int) {
	l.Helper()
	l.kubectl("--namespace", namespace, "delete", "deployment", "flex-dispatcher", "--cascade=foreground")
	flex := repository + "/bin/kubectl-flex"
	out, err := l.try(flex, "uninstall")
	if (err == nil && volumes > 0) || strings.Count(out, "PersistentVolume pvc-") < volumes { // a Job may still have its record
		l.Errorf("kubectl flex uninstall, with %d volumes: %v\n%s", volumes, err, out)
	}
	l.run(flex, "uninstall", "--yes")
}

// onlyWhatIsKept checks that Helm has deleted all objects of the release but the namespaces, and
// nothing that is not the release's: the records of the volume that is still there.
func (l lab) onlyWhatIsKept() {
	l.Helper()
	const kinds = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,storageclasses"
	for line := range strings.Lines(l.kubectl("get", kinds, "--output=name")) {
		if strings.Contains(line, "/flex-") || strings.Contains(line, "/cinder-") {
			l.Errorf("%s is left", line)
		}
	}
	const others = "deployments,roles,rolebindings,poddisruptionbudgets,secrets"
	for name := range strings.FieldsSeq(l.kubectl("get", others, "--namespace", namespace, "--output=name")) {
		l.Errorf("%s is left in %s", name, namespace)
	}
	kept := l.kubectl("get", "secrets,controllerrevisions", "--namespace", "flex-provisioner", "--output=name")
	if !strings.Contains(kept, "secret/cinder\n") || !strings.Contains(kept, "secret/pvc-") || !strings.Contains(kept, "controllerrevision.apps/") {
		l.Errorf("Secrets and config revisions that are kept:\n%s", kept)
	}
	l.kubectl("get", "namespace", "flex-provisioner", "flex-provisioner-node", "team-a")
}
