//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// Lines of scripts that play a provisioning image.
const (
	// deletes succeeds at once for every delete.
	deletes = "[ $FLEX_VERB != delete ] || exit 0\n"
	// offer describes a volume that no storage has to make, so that the dispatcher writes its PV.
	offer = `echo '{"source": {"nfs": {"server": "10.250.0.9", "path": "/exports/'$FLEX_PV_NAME'"}}}' >/dev/termination-log` + "\n"
)

// scripted is a config whose container runs a script in bash. It has no access to the cluster: the
// dispatcher writes the PV. The templates are changes of the pod-template.
func scripted(script string, more map[string]string, templates ...func(*corev1.PodTemplateSpec)) map[string]string {
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(1)), // bash as a pod's first process ignores SIGTERM
		Containers:                    []corev1.Container{{Name: "provisioner", Command: []string{"/bin/bash", "-euc", script}}},
	}}
	for _, change := range templates {
		change(&template)
	}
	text, err := json.Marshal(template)
	if err != nil {
		panic(err) // a struct of Kubernetes' own
	}
	data := map[string]string{
		"image": bashImage, "verbs": "provision,delete", "write-pv": "dispatcher", "pod-template": string(text),
	}
	maps.Copy(data, more)
	return data
}

// service makes a class and its config, both named after the test's namespace.
func (w *world) service(data map[string]string, change ...func(*storagev1.StorageClass)) (string, *corev1.ConfigMap) {
	w.t.Helper()
	w.class(w.ns, change...)
	return w.ns, w.config(ownNamespace, w.ns, data)
}

// edit replaces the data of a config, and gives the dispatchers' caches time to have it: a claim
// that is made at once may be served by the revision before, and nothing that a test can look at
// says when the edit has arrived.
func (w *world) edit(cm *corev1.ConfigMap, data map[string]string) {
	w.t.Helper()
	configs := kube.CoreV1().ConfigMaps(cm.Namespace)
	w.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := configs.Get(w.ctx(), cm.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now.Data = data
		_, err = configs.Update(w.ctx(), now, metav1.UpdateOptions{})
		return err
	}), "edit the config "+cm.Name)
	time.Sleep(2 * time.Second)
}

// notes returns the notes of an object's events with this reason, in their order.
func (w *world) notes(about metav1.Object, reason string) []string {
	w.t.Helper()
	notes, err := notesOf(w.ctx(), about, reason)
	w.must(err, "look at the events of "+about.GetName())
	return notes
}

// notesOf are the notes of the events about an object with a reason.
func notesOf(ctx context.Context, about metav1.Object, reason string) ([]string, error) {
	found, err := events(ctx, about.GetNamespace(), about.GetUID())
	var notes []string
	for _, e := range found {
		if e.Reason == reason {
			notes = append(notes, strings.TrimSpace(e.Note))
		}
	}
	return notes, err
}
