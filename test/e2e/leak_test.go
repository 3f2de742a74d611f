//go:build e2e

package e2e

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// No CHAP password and no Cinder credential appears in any log, event, Job or pod of the cluster.
// The search first proves that it finds a canary in each of these.
func TestNoSecretLeaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "leak")
	canaries := w.plant()
	kept := []*corev1.PersistentVolumeClaim{w.claim(cinderClass, "one"), w.claim(cinderClass, "two")}
	var secrets []string
	for _, claim := range kept {
		_, password := w.chap(w.bound(claim))
		secrets = append(secrets, password)
	}
	w.findsNoSecret(canaries, secrets)
}

// findsNoSecret searches all places, and more, for these secrets and all others that are known, and
// first for the canaries.
func (w *world) findsNoSecret(canaries map[string]string, secrets []string, more ...place) {
	w.t.Helper()
	credential, err := cinderCredential(w.ctx())
	w.must(err, "find what to search for")
	secrets = slices.Compact(slices.Sorted(slices.Values(append(append(secrets, knownPasswords()...), credential))))

	places := append(w.places(), more...)
	for kind, canary := range canaries {
		found := strings.Join(leaks(places, canary), " ")
		contains(w.t, "where the canary of the "+kind+" was found", found, kind)
	}
	w.dispatchersLog(places)
	for i, secret := range secrets {
		if len(secret) < 12 {
			w.t.Errorf("the secret %d is too short to be searched for", i)
		}
		for _, name := range leaks(places, secret) {
			w.t.Errorf("the secret %d stands in the %s", i, name)
		}
	}
	w.t.Logf("searched %d places for %d secrets", len(places), len(secrets))
}

// plant puts a canary of its own into a log, an argument, a variable and an event, and returns each
// with the kind of place where it must be found. The one in the log comes out of a Secret, as a
// leak would.
func (w *world) plant() map[string]string {
	w.t.Helper()
	log, event, argument, variable := rand.Text(), rand.Text(), rand.Text(), rand.Text()
	_, err := kube.CoreV1().Secrets(w.ns).Create(w.ctx(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "canary"}, StringData: map[string]string{"word": log},
	}, metav1.CreateOptions{})
	w.must(err, "create the canary's Secret")

	pod := shell("canary", "", `echo "$WORD"`, nil)
	pod.Spec.Containers[0].Args = []string{argument}
	word := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "canary"}, Key: "word"}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "WORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: word}}}
	w.pod(pod)
	equal(w.t, "what the canary's pod printed", w.output("canary"), log+"\n")

	_, err = kube.BatchV1().Jobs(w.ns).Create(w.ctx(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "canary"},
		Spec: batchv1.JobSpec{Suspend: new(true), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "c", Image: bashImage, Env: []corev1.EnvVar{{Name: "WORD", Value: variable}}}},
		}}},
	}, metav1.CreateOptions{})
	w.must(err, "create the canary's Job")

	_, err = kube.EventsV1().Events(w.ns).Create(w.ctx(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "canary"}, EventTime: metav1.NewMicroTime(time.Now()), Type: corev1.EventTypeNormal,
		Action: "Sing", Reason: "Canary", Note: "it sings " + event, ReportingController: "e2e", ReportingInstance: "e2e",
		Regarding: corev1.ObjectReference{Kind: "Namespace", Name: w.ns, Namespace: w.ns},
	}, metav1.CreateOptions{})
	w.must(err, "create the canary's event")
	return map[string]string{
		"log of " + w.ns + "/canary/shell": log,
		"pod " + w.ns + "/canary":          argument,
		"Job " + w.ns + "/canary":          variable,
		"event " + w.ns + "/canary":        event,
	}
}

// dispatchersLog checks that the logs of all replicas are among the places, and that at least the
// leader's is not empty.
func (w *world) dispatchersLog(places []place) {
	w.t.Helper()
	logs, lines := 0, 0
	for _, p := range places {
		if strings.HasPrefix(p.name, "log of "+systemNamespace+"/"+dispatcher+"-") {
			logs++
			lines += strings.Count(p.text, "\n")
		}
	}
	if logs < dispatcherNumber || lines < 20 {
		w.t.Errorf("%d logs of dispatchers with %d lines were searched: too few to prove anything", logs, lines)
	}
}
