//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nodes of the lab, by number: node1 and node2.
var nodes = []string{"1", "2"}

// onNode runs a command as root on a node.
func onNode(ctx context.Context, node string, command ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "../cluster/node.sh", append([]string{"exec", node}, command...)...).Output()
	return strings.TrimSpace(string(out)), err
}

// dispatchers lists the dispatcher's processes on a node, as the node numbers them.
func dispatchers(ctx context.Context, node string) ([]string, error) {
	out, err := onNode(ctx, node, "pgrep", "-x", "flex-dispatcher")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return nil, nil // pgrep found none
	}
	if err != nil {
		return nil, fmt.Errorf("look for dispatchers on node%s: %w", node, err)
	}
	return strings.Fields(out), nil
}

// labState is the lab's folder on the host.
func labState() string { return cmp.Or(os.Getenv("LAB_STATE"), "/var/lib/flex-lab") }

// directory is where a claim's directory would be on a node, seen from the host: every node has its
// own /var/lib/flex-volumes.
func directory(node string, claim *corev1.PersistentVolumeClaim) string {
	return filepath.Join(labState(), "kube", "node"+node, "volumes", "pvc-"+string(claim.UID))
}

// holders names the nodes that have the claim's directory.
func (w *world) holders(claim *corev1.PersistentVolumeClaim) string {
	w.t.Helper()
	var found []string
	for _, node := range nodes {
		volumes := filepath.Dir(directory(node, claim))
		if _, err := os.Stat(volumes); err != nil {
			w.t.Fatalf("the nodes' directories are elsewhere: %v", err)
		}
		if _, err := os.Stat(directory(node, claim)); err == nil {
			found = append(found, "node"+node)
		}
	}
	return fmt.Sprint(found)
}
