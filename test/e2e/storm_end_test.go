//go:build e2e && storms

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// What is done with the claims when all are at rest.

// readAll reads every volume on the node on which it was not written.
func (s *storm) readAll() {
	s.w.t.Helper()
	began := time.Now()
	s.removePods()
	var kept []*stormClaim
	for _, c := range s.claims {
		if c.isKept() {
			kept = append(kept, c)
		}
	}
	s.w.inParallel(len(kept), func(i int) error {
		c := kept[i]
		return s.startPod(s.w.ctx(), writable(shell("reads-"+c.name, c.otherNode(), s.reports.by(c, "reader"), wanted(cinderClass, c.name))))
	})
	s.w.eventually(8*time.Minute, "all data to be read on the other node", func(context.Context) error {
		var errs []error
		for _, c := range kept {
			if err := s.reports.of(c, "reader"); err != nil {
				errs = append(errs, fmt.Errorf("%s on %s: %w", c.name, c.otherNode(), err))
			}
		}
		return errors.Join(errs...)
	})
	s.removePods()
	s.w.t.Logf("the data of %d claims were read on the other node in %.1f s", len(kept), time.Since(began).Seconds())
}

// removePods deletes the test's pods.
func (s *storm) removePods() {
	s.w.t.Helper()
	s.w.must(kube.CoreV1().Pods(s.w.ns).DeleteCollection(s.w.ctx(), metav1.DeleteOptions{}, all), "delete the pods")
	s.w.eventually(toMount, "the pods to have gone", func(ctx context.Context) error {
		pods, err := kube.CoreV1().Pods(s.w.ns).List(ctx, all)
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%d are there", len(pods.Items))
		}
		return err
	})
}

// audit has nothing to say of what is there: neither of the cluster nor, by the list of the image,
// of the storage. It runs as of an hour later, since it leaves out what is young. First it must
// find a Secret and a volume of a claim that never was.
func (s *storm) audit() {
	w, volumes, lost := s.w, s.listVolumes(), string(uuid.NewUUID())
	w.t.Helper()
	equal(w.t, "volumes that the image lists", strings.Count(volumes, "\n"), stormClaims)
	secrets := kube.CoreV1().Secrets(w.ns)
	canary := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "lost", Labels: map[string]string{"flex-provisioner.io/claim-uid": lost}}}
	_, err := secrets.Create(w.ctx(), canary, metav1.CreateOptions{})
	w.must(err, "create the Secret of a claim that never was")
	found, err := w.auditAfterwards(volumes + fmt.Sprintf(`{"uid": %q, "volume": "lost-volume", "sizeGiB": 1}`, lost))
	if err == nil {
		w.t.Errorf("the audit does not fail: %s", found)
	}
	contains(w.t, "what the audit finds", found, "secret/lost -n "+w.ns)
	contains(w.t, "what the audit finds", found, "volume lost-volume")
	equal(w.t, "findings", strings.Count(found, "\n    "), 2)
	w.gone(secrets.Delete(w.ctx(), canary.Name, metav1.DeleteOptions{}), "the Secret")

	found, err = w.auditAfterwards(volumes)
	w.must(err, "audit: "+found)
	w.t.Logf("flex-dispatcher audit: %s", strings.TrimSpace(found))
}

// listVolumes returns what the image lists, as an administrator runs it.
func (s *storm) listVolumes() string {
	s.w.t.Helper()
	dir := s.w.t.TempDir()
	request := `{"version": "flex-provisioner.io/v1", "verb": "list", "requests": [{"properties": {}}]}`
	s.w.must(os.WriteFile(filepath.Join(dir, "request.json"), []byte(request), 0o600), "write the request")
	login, err := os.ReadFile(filepath.Join(labState(), "cinder", "openrc"))
	s.w.must(err, "read how to log in")
	list := exec.CommandContext(s.w.ctx(), "../../bin/cinder-provisioner", "list", "--dir", dir)
	list.Env = append(os.Environ(), strings.Fields(string(login))...)
	var said bytes.Buffer
	list.Stderr = &said
	out, err := list.Output()
	s.w.must(err, "list the volumes: "+said.String())
	return string(out)
}

// auditAfterwards returns what an audit finds that takes it to be an hour later.
func (w *world) auditAfterwards(volumes string) (string, error) {
	w.t.Helper()
	list := filepath.Join(w.t.TempDir(), "volumes")
	w.must(os.WriteFile(list, []byte(volumes), 0o600), "write the list of volumes")
	var said bytes.Buffer
	audit := exec.CommandContext(w.ctx(), dispatcherBinary, "audit", "--kubeconfig="+os.Getenv("KUBECONFIG"), "--volumes="+cinderClass+"="+list)
	audit.Stdout, audit.Stderr = &said, &said
	err := runAtAnotherTime(time.Hour, audit)
	return said.String(), err
}

// labLogs are the logs of the cluster's own parts.
func (w *world) labLogs() []place {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(labState(), "kube", "log", "*.log"))
	w.must(err, "look for logs")
	if len(files) < 8 { // four parts of the control plane, and of each node kubelet and containerd
		w.t.Errorf("there are only the logs %v", files)
	}
	var out []place
	for _, file := range files {
		text, err := os.ReadFile(file)
		w.must(err, "read a log")
		out = append(out, place{name: file, text: string(text)})
	}
	return out
}

// deleteAll deletes what is there, and waits until nothing is left.
func (s *storm) deleteAll() {
	s.w.t.Helper()
	began := time.Now()
	s.w.must(kube.CoreV1().PersistentVolumeClaims(s.w.ns).DeleteCollection(s.w.ctx(), metav1.DeleteOptions{}, all), "delete the claims")
	err := pollEvery(s.w.ctx(), 3*time.Second, toRest, func(ctx context.Context) error {
		found, err := takeStock(ctx, s.w.ns)
		return errors.Join(err, s.resetStuckVolumes(ctx, found.volumes), s.complaints(found, false))
	})
	s.w.must(err, "delete all claims")
	s.w.t.Logf("nothing was left of all claims after %.1f s", time.Since(began).Seconds())
}
