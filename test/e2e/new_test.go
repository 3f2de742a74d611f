//go:build e2e && long

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// made writes the folder of a provisioner by kubectl flex new, and applies its manifests, all but those
// of the kinds given. It returns the folder.
func (w *world) made(name, kind string, without ...string) (dir string) {
	w.t.Helper()
	in := w.t.TempDir()
	w.runsIn(in, absolute(w, pluginBinary), "new", name, "--"+kind)
	dir = filepath.Join(in, name)
	w.applyFile(filepath.Join(dir, name+".yaml"), without...)
	return dir
}

func absolute(w *world, path string) string {
	w.t.Helper()
	path, err := filepath.Abs(path)
	w.must(err, "find "+path)
	return path
}

// runsIn runs a program in a directory.
func (w *world) runsIn(dir, program string, arguments ...string) {
	w.t.Helper()
	cmd := exec.CommandContext(w.ctx(), program, arguments...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	w.must(cmd.Run(), program+" "+strings.Join(arguments, " "))
}

// A provisioner that kubectl flex new has written serves claims before anything in it is changed, but
// for the server: a directory of node1 stands for its export.
func TestNewProvisionerOfANetworkStorage(t *testing.T) {
	const name = "new-network"
	w := newWorld(t, name)
	export := w.export(name + "-export")
	w.made(name, "network", "PersistentVolume")
	w.remove(func() { w.removeJobsThatMount(name + "-export") })

	claim := w.claim(name, "data", manyWriters)
	pv := w.bound(claim)
	equal(t, "the path", pv.Spec.NFS.Path, "/exports/kubernetes/"+pv.Name)
	info, err := os.Stat(filepath.Join(export, pv.Name))
	w.must(err, "look for the volume")
	equal(t, "it is a directory", info.IsDir(), true)
	w.deleteClaim(claim)
	w.vanished(claim)
	left, err := os.ReadDir(export)
	w.must(err, "read the export")
	equal(t, "what is left in the export", len(left), 0)
}

// On a node a pod also mounts the volume.
func TestNewProvisionerOfANode(t *testing.T) {
	const name = "new-node"
	w := newWorld(t, name)
	w.made(name, "node")

	claim := w.claim(name, "data")
	w.pod(shell("writer", "node1", "echo kept >/data/file", claim))
	w.output("writer")
	w.bound(claim)
	equal(t, "nodes with the directory", w.holders(claim), "[node1]")
	equal(t, "what another pod reads", w.read(claim, "node1", "cat /data/file"), "kept\n")
	w.deletePods("writer")
	w.deleteClaim(claim)
	w.vanished(claim)
	equal(t, "nodes with the directory of a deleted claim", w.holders(claim), "[]")
}
