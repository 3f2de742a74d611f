//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A node loses its power while a pod writes. An administrator says that the node is off, and a pod
// on the other node reads every record of which the first had reported that it was synced. The node
// boots again and reads them, too.
func TestWhatWasSyncedOutlivesTheNodeThatWroteIt(t *testing.T) {
	w := newWorld(t, "killed-node")
	claim := w.claim(cinderClass, "data")
	url, synced := w.reports()
	w.pod(writable(shell("writer", "node2", fmt.Sprintf(writesRecords, url), claim)))
	w.eventually(toMount, "the pod to have written many records", func(context.Context) error {
		if last := synced(); last < 50 {
			return fmt.Errorf("the last one is %d", last)
		}
		return nil
	})
	w.whenDone(func() { w.restore("2") })
	w.power("kill", "2")
	last := synced()
	w.outOfService("node2", true)
	w.hasRecords(w.read(claim, "node1", "cat /data/records; echo from node1 >/data/file"), last)
	w.restore("2")
	w.hasRecords(w.read(claim, "node2", "cat /data/records"), last)
	equal(t, "the file of the other node", w.read(claim, "node2", "cat /data/file"), "from node1\n")
}

// writesRecords writes the numbers from 0 on, each as a line of 8 bytes, and reports each when it
// is synced.
const writesRecords = `
i=0
while :; do
  printf '%%07d\n' $i | dd of=/data/records bs=8 seek=$i conv=notrunc,fsync 2>/dev/null
  wget -q -O /dev/null %s/$i
  i=$((i + 1))
done`

// reports returns the URL to which a pod reports its records, and what the last one was.
func (w *world) reports() (url string, last func() int64) {
	w.t.Helper()
	var newest atomic.Int64
	newest.Store(-1)
	url = w.serve(func(answer http.ResponseWriter, r *http.Request) {
		i, err := strconv.ParseInt(strings.TrimPrefix(r.URL.Path, "/"), 10, 64)
		if err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		newest.Store(i)
	})
	return url, newest.Load
}

// hasRecords fails the test unless a text begins with all records up to the last one.
func (w *world) hasRecords(text string, last int64) {
	w.t.Helper()
	w.t.Logf("%d records were synced, %d bytes are read", last+1, len(text))
	var want strings.Builder
	for i := range last + 1 {
		fmt.Fprintf(&want, "%07d\n", i)
	}
	if !strings.HasPrefix(text, want.String()) {
		w.t.Errorf("%d records were synced, and this is read: %q", last+1, text)
	}
}

// power turns a node off without notice (kill), or on again (up).
func (w *world) power(what, node string) {
	w.t.Helper()
	out, err := exec.CommandContext(w.ctx(), "../cluster/node.sh", what, node).CombinedOutput()
	w.must(err, "node.sh "+what+" "+node+": "+string(out))
}

// restore boots a node that was killed, and undoes what an administrator has said of it, as soon as
// the node is Ready.
func (w *world) restore(node string) {
	w.t.Helper()
	name, began := "node"+node, time.Now().Truncate(time.Second)
	if _, err := onNode(w.ctx(), node, "true"); err != nil {
		w.power("up", node)
		w.eventually(toMount, name+" to be Ready again", func(ctx context.Context) error { return readySince(ctx, name, began) })
	}
	w.outOfService(name, false)
	w.eventually(toBind, "the dispatchers to be ready", dispatchersReady)
}

// readySince returns an error unless a node has said after a time that it is Ready.
func readySince(ctx context.Context, name string, began time.Time) error {
	node, err := kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.Time.Before(began) {
			return nil
		}
	}
	return fmt.Errorf("its conditions are %v", node.Status.Conditions)
}

// outOfService sets the taint by which an administrator says that a node is off, or removes it.
func (w *world) outOfService(name string, off bool) {
	w.t.Helper()
	w.eventually(toBind, "the taints of "+name+" to be written", func(ctx context.Context) error {
		node, err := kube.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		if off {
			taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
			node.Spec.Taints = append(node.Spec.Taints, taint)
		}
		_, err = kube.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
}
