//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// shellImage runs scripts of configs that name no image.
const shellImage = "localhost/flex-shell:dev"

// tenLines is a provisioner as an administrator writes it: the whole of it is in the ConfigMap.
const tenLines = `
verbs: provision,delete
service-account-name: directory-provisioner
run-on: selected-node
base-dir: /var/lib/flex-volumes
script: |
  #!/bin/bash
  set -euo pipefail
  dir=$FLEX_BASE_DIR/$FLEX_PV_NAME
  case $1 in
    provision)
      mkdir -p -m 0777 "$dir"
      flex pv --local "$dir"
      ;;
    delete) flex empty "$dir" ;;
  esac
pod-template: |
  spec:
    securityContext: {runAsNonRoot: false, runAsUser: 0, runAsGroup: 0}
    containers:
      - name: provisioner
        securityContext:
          capabilities: {drop: [ALL], add: [DAC_OVERRIDE, FOWNER]}
        volumeMounts:
          - {name: volumes, mountPath: /var/lib/flex-volumes}
    volumes:
      - name: volumes
        hostPath: {path: /var/lib/flex-volumes, type: DirectoryOrCreate}
`

// A ConfigMap is all that a provisioner needs. After an edit of the script, the volume of the
// earlier text is deleted by that text.
func TestAScriptIsAProvisioner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "script")
	data := map[string]string{}
	w.must(yaml.UnmarshalStrict([]byte(tenLines), &data), "read the config")
	w.class(w.ns, parameter("flex-provisioner.io/config-namespace", nodeNamespace), func(c *storagev1.StorageClass) {
		c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	cm := w.config(nodeNamespace, w.ns, data)
	started := time.Now()
	old := w.claim(w.ns, "old")
	w.pod(shell("writer", "node1", "echo from a pod >/data/file", old))
	w.bound(old)
	t.Logf("bound %.1f s after the claim was made", time.Since(started).Seconds())
	w.output("writer")
	equal(t, "nodes with the directory", w.holders(old), "[node1]")
	equal(t, "the image", w.onlyPod(w.onlyJob(old, "provision")).Spec.Containers[0].Image, shellImage)

	// The edited text has a second folder for each volume. What the test puts there for the old volume,
	// the earlier text does not know.
	data["script"] = strings.ReplaceAll(data["script"], `0777 "$dir"`, `0777 "$dir" "$dir.more"`)
	data["script"] = strings.ReplaceAll(data["script"], `empty "$dir"`, `empty "$dir" "$dir.more"`)
	w.edit(cm, data)
	more := directory("1", old) + ".more"
	w.must(os.Mkdir(more, 0o700), "make a folder beside the old volume")
	w.remove(func() { w.must(os.Remove(more), "remove the folder beside the old volume") })
	young := w.claim(w.ns, "young")
	w.pod(shell("consumer", "node1", "true", young))
	w.output("consumer")
	name := w.bound(young).Name
	equal(t, "what the edited script has made", w.foldersNamed(young), "[node1: "+name+" node1: "+name+".more]")

	w.deletePods("writer", "consumer")
	w.deleteClaim(old)
	w.deleteClaim(young)
	w.vanished(old)
	w.vanished(young)
	equal(t, "what is left of the old volume", w.foldersNamed(old), "[node1: "+filepath.Base(more)+"]")
	equal(t, "what is left of the new volume", w.foldersNamed(young), "[]")
}

// foldersNamed are the nodes with a folder whose name begins with that of the claim's PV.
func (w *world) foldersNamed(claim *corev1.PersistentVolumeClaim) string {
	w.t.Helper()
	found := []string{}
	for _, node := range nodes {
		entries, err := os.ReadDir(filepath.Dir(directory(node, claim)))
		w.must(err, "look at the folders of node"+node)
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), "pvc-"+string(claim.UID)) {
				found = append(found, "node"+node+": "+entry.Name())
			}
		}
	}
	return fmt.Sprint(found)
}

// fixedNames writes the same names in each run, and finds what it has written.
const fixedNames = `#!/bin/bash
set -euo pipefail
[ "$1" = provision ] || exit 0
for dir in "$TMPDIR" "$HOME" .; do
  [ ! -e "$dir/name" ] || flex refuse "$dir is not empty"
  echo "$FLEX_PV_NAME" >"$dir/name-$FLEX_PV_NAME"
done
cp "name-$FLEX_PV_NAME" "$TMPDIR/work"
sleep 2
[ "$(cat "$TMPDIR/work")" = "$FLEX_PV_NAME" ] || flex refuse "another run writes here"
flex pv '{"spec":{"nfs":{"server":"10.250.0.9","path":"/exports/'"$FLEX_PV_NAME"'"}}}'
`

// Claims that waited for a dispatcher share few Jobs, in which eight scripts run at a time.
func TestWaitingClaimsShareTheScriptsOfFewJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "scripts")
	const many = 48
	w.class(w.ns, w.oursAlone)
	w.config(w.ns, w.ns, map[string]string{
		"script": fixedNames, "verbs": "provision,delete", "batch-size": "16", "service-account-name": w.pvWriter(),
	})
	var claims []*corev1.PersistentVolumeClaim
	for i := range many {
		claims = append(claims, w.claim(w.ns, fmt.Sprintf("data-%02d", i)))
	}
	w.started("--script-image=" + shellImage)
	w.all(claims, 4*time.Minute, "to be bound", succeeded)
	made := w.jobsOfAll("provision", claims)
	t.Logf("%d claims served by %d Jobs: %v", many, len(made), sizes(made))
	if len(made) > 5 {
		t.Errorf("%d Jobs for %d claims, want at most 5", len(made), many)
	}
	for _, claim := range claims {
		w.neverFailed(claim)
		w.deleteClaim(claim)
	}
	w.allClaims(4*time.Minute, "to have gone with all that was made", nothingLeft)
}

// What is wrong with a text is said where it is applied, or on the claim.
func TestFaultsOfAScriptAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "script-faults")
	w.class(w.ns, w.oursAlone)
	cm := w.config(w.ns, w.ns, map[string]string{
		"script": "#!/usr/bin/no-such-shell\ntrue\n", "verbs": "provision,delete", "write-pv": "dispatcher",
	})
	w.started("--script-image=" + shellImage)
	claim := w.claim(w.ns, "data")
	w.failed(claim, 1, toBind)
	w.event(w.look(claim), "ProvisioningFailed", "no-such-shell", "exit code 78")

	w.edit(cm, map[string]string{
		"script": "#!/bin/bash\ntrue\n", "image": cinderImage, "batch-size": "4", "verbs": "provision,delete",
		"service-account-name": w.pvWriter(),
	})
	w.eventually(toBind, "the claim to say that its image has no flex", func(ctx context.Context) error {
		notes, err := notesOf(ctx, claim, "ProvisioningFailed")
		if err == nil && !strings.Contains(strings.Join(notes, "\n"), "no program flex") {
			err = fmt.Errorf("its events say %q", notes)
		}
		return err
	})
}
