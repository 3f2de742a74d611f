//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// notedDirectories is the provisioner of node-directory, with notes of whose the directories are.
const notedDirectories = `
verbs: provision,delete,list
service-account-name: directory-provisioner
run-on: selected-node
base-dir: /var/lib/flex-volumes
script: |
  #!/bin/bash
  set -euo pipefail
  notes=$FLEX_BASE_DIR/.$FLEX_STORAGE_CLASS
  if [ "$1" = list ]; then
    [ -d "$notes" ] || exec flex list
    exec flex list "$notes"
  fi
  dir=$FLEX_BASE_DIR/$FLEX_PV_NAME
  case $1 in
    provision)
      mkdir -p "$notes"
      flex note "$notes/$FLEX_PV_NAME"
      mkdir -p -m 0777 "$dir"
      flex pv --local "$dir"
      ;;
    delete)
      flex empty "$dir"
      rm -f "$notes/$FLEX_PV_NAME"
      ;;
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

// An orphan is all that the second node has of the class, so no PersistentVolume names that node.
func TestAuditOfAClassOnNodesFindsAnOrphanOnEachNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "left-on-nodes")
	admin := os.Getenv("KUBECONFIG")
	data := map[string]string{}
	w.must(yaml.UnmarshalStrict([]byte(notedDirectories), &data), "read the config")
	w.class(w.ns, parameter("flex-provisioner.io/config-namespace", nodeNamespace), func(c *storagev1.StorageClass) {
		c.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	w.config(nodeNamespace, w.ns, data)

	claims := map[string]*corev1.PersistentVolumeClaim{}
	for name, node := range map[string]string{"one": "node1", "two": "node2", "kept": "node1"} {
		claims[name] = w.claim(w.ns, name)
		w.pod(shell(name, node, "echo from a pod >/data/file", claims[name]))
	}
	for name, claim := range claims {
		pv := w.bound(claim)
		w.output(name)
		w.remove(func() { w.removeDirectories(claim) })
		if name != "kept" {
			w.deletePods(name)
			w.leaves(claim, pv)
		}
	}

	said, code := w.flex(admin, "audit", "--storage="+w.ns)
	equal(t, "the exit code of an audit that finds something: "+said, code, 1)
	for name, node := range map[string]string{"one": "node1", "two": "node2"} {
		volume := "pvc-" + string(claims[name].UID)
		contains(t, "what audit said", said, "VolumeLeft: volume "+volume+" on the node "+node)
		contains(t, "what audit said", said, "--fix="+volume)
	}
	w.mustNotSay(said, string(claims["kept"].UID))

	said, _ = w.flex(admin, "audit", "--storage="+w.ns, "--fix")
	for name, node := range map[string]string{"one": "node1", "two": "node2"} {
		contains(t, "what audit said", said, "volume pvc-"+string(claims[name].UID)+" on the node "+node+" of the class "+w.ns+", of the claim "+w.ns+"/"+name+", was deleted")
		equal(t, "the nodes that have the volume of the claim "+name, w.foldersNamed(claims[name]), "[]")
	}
	equal(t, "the nodes that have the volume of the claim kept", w.holders(claims["kept"]), "[node1]")
	said, _ = w.flex(admin, "audit", "--storage="+w.ns)
	for _, claim := range claims {
		w.mustNotSay(said, string(claim.UID))
	}
	w.leavesNoJobOfAnAudit(nodeNamespace)
	w.deletePods("kept")
	w.deleteClaim(claims["kept"])
	w.vanished(claims["kept"])
}

// removeDirectories removes what a test that has failed leaves of a claim on nodes, and its class's notes.
func (w *world) removeDirectories(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	for _, node := range nodes {
		w.must(os.RemoveAll(directory(node, claim)), "remove the directory of a volume")
		w.must(os.RemoveAll(filepath.Join(filepath.Dir(directory(node, claim)), "."+w.ns)), "remove the notes of the class")
	}
}
