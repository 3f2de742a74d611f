//go:build e2e

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Keys of a CHAP Secret, as the kubelet reads them.
const (
	chapUser     = "node.session.auth.username"
	chapPassword = "node.session.auth.password"
	// flexPassword is the key in the Secret of a FlexVolume.
	flexPassword = "auth_password"
)

// passwords are all the CHAP passwords that the tests' volumes ever had.
var passwords = struct {
	sync.Mutex
	all map[string]bool
}{all: map[string]bool{}}

// collectPasswords watches the CHAP Secrets, so that those of deleted volumes are known too.
func collectPasswords(ctx context.Context) error {
	config := *kubeConfig
	config.Timeout = 0 // a watch has no timeout
	client, err := kubernetes.NewForConfig(&config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(ownNamespace))
	note := func(obj any) {
		secret, ok := obj.(*corev1.Secret)
		if !ok {
			return
		}
		passwords.Lock()
		defer passwords.Unlock()
		for _, key := range []string{chapPassword, flexPassword} {
			if len(secret.Data[key]) > 0 {
				passwords.all[string(secret.Data[key])] = true
			}
		}
	}
	handle, err := factory.Core().V1().Secrets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, now any) { note(now) },
	})
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
		return errors.New("the CHAP Secrets cannot be watched")
	}
	return nil
}

func knownPasswords() []string {
	passwords.Lock()
	defer passwords.Unlock()
	return slices.Sorted(maps.Keys(passwords.all))
}

// chap is what the CHAP Secret of a PV holds.
func (w *world) chap(pv *corev1.PersistentVolume) (user, password string) {
	w.t.Helper()
	ref := pv.Spec.ISCSI.SecretRef
	secret, err := kube.CoreV1().Secrets(ref.Namespace).Get(w.ctx(), ref.Name, metav1.GetOptions{})
	w.must(err, "read the CHAP Secret that the PersistentVolume names")
	return string(secret.Data[chapUser]), string(secret.Data[chapPassword])
}

var passwordLine = regexp.MustCompile(`(?m)^\s*(?:password|application-credential-secret)\s*=\s*"?([^"\s]+)`)

// cinderCredential is the password in the cloud config that the Cinder image reads. A Cinder
// without keystone does not check it, but it must not leak either.
func cinderCredential(ctx context.Context) (string, error) {
	secret, err := kube.CoreV1().Secrets(ownNamespace).Get(ctx, "cinder", metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("read the Secret cinder: %w", err)
	}
	found := passwordLine.FindSubmatch(secret.Data["cloud.conf"])
	if found == nil || len(found[1]) < 12 {
		return "", errors.New("the Secret cinder holds no password worth searching for: hack/cinder-secret.sh makes one")
	}
	return string(found[1]), nil
}

// forms returns how a secret may look where it has leaked: plain, or in base64 as in a Secret.
func forms(secret string) []string {
	return []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))}
}

// redact hides every secret that is known.
func redact(ctx context.Context, text string) string {
	secrets := knownPasswords()
	if credential, err := cinderCredential(ctx); err == nil {
		secrets = append(secrets, credential)
	}
	for _, secret := range secrets {
		for _, form := range forms(secret) {
			text = strings.ReplaceAll(text, form, "[redacted]")
		}
	}
	return text
}

// place is a text that must hold no secret.
type place struct{ name, text string }

// leaks returns the names of the places that hold a secret.
func leaks(places []place, secret string) []string {
	var found []string
	for _, p := range places {
		if slices.ContainsFunc(forms(secret), func(form string) bool { return strings.Contains(p.text, form) }) {
			found = append(found, p.name)
		}
	}
	return found
}

// places are all events, all Jobs and pods with their arguments, variables and annotations, and all
// logs.
func (w *world) places() []place {
	w.t.Helper()
	var out []place
	events, err := kube.EventsV1().Events("").List(w.ctx(), all)
	w.must(err, "list events")
	for _, e := range events.Items {
		out = append(out, w.place("event "+e.Namespace+"/"+e.Name, e))
	}
	jobs, err := kube.BatchV1().Jobs("").List(w.ctx(), all)
	w.must(err, "list Jobs")
	for _, job := range jobs.Items {
		out = append(out, w.place("Job "+job.Namespace+"/"+job.Name, job))
	}
	pods, err := kube.CoreV1().Pods("").List(w.ctx(), all)
	w.must(err, "list pods")
	for i := range pods.Items {
		pod := &pods.Items[i]
		out = append(out, w.place("pod "+pod.Namespace+"/"+pod.Name, pod))
		out = append(out, w.logs(pod)...)
	}
	return out
}

func (w *world) place(name string, object any) place {
	w.t.Helper()
	text, err := json.Marshal(object)
	w.must(err, "print "+name)
	return place{name: name, text: string(text)}
}

// logs of every container of a pod that has begun to run, and of those that ran before it.
func (w *world) logs(pod *corev1.Pod) []place {
	w.t.Helper()
	var out []place
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.State.Waiting != nil && s.RestartCount == 0 {
			continue
		}
		for _, before := range []bool{false, true} {
			if before && s.RestartCount == 0 {
				continue
			}
			log, err := kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: s.Name, Previous: before}).DoRaw(w.ctx())
			if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
				continue // it was deleted a moment ago, or has not been started again
			}
			name := "log of " + pod.Namespace + "/" + pod.Name + "/" + s.Name
			w.must(err, "read the "+name)
			out = append(out, place{name: name, text: string(log)})
		}
	}
	return out
}
