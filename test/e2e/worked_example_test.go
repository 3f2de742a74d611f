//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// announcement is what the provisioner of configmaps/seeded-directory.yaml posts about a new
// volume.
type announcement struct {
	Volume string `json:"volume"`
	Bytes  int64  `json:"bytes"`
	key    string
	// bound says that the claim was bound already when the announcement came.
	bound bool
}

// A volume begins with its seed's files, and is announced before the claim is bound to it. The
// receiver fails once, so that the provisioner runs a second time.
func TestSeededDirectoryIsAnnouncedBeforeItsClaimIsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "seed")
	w.class(w.ns, parameter("flex-provisioner.io/config-namespace", nodeNamespace), func(class *storagev1.StorageClass) {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	url, received := w.receiver("data")
	w.apply("seeded-directory", "StorageClass") // its ConfigMap seed
	w.copyOf(w.exampleConfig("seeded-directory", "seeded-directory"), func(data map[string]string) { data["notify-url"] = url })
	claim := w.claim(w.ns, "data")
	w.pod(shell("reader", "node2", "cat /data/README; echo; grep workers /data/settings.ini; echo more >/data/own", claim))
	contains(t, "what the pod read", w.output("reader"), "begins with these files.\nworkers = 4\n")
	pv := w.bound(claim)
	w.event(claim, "ProvisioningFailed", "could not be announced", "exit code 75")
	equal(t, "attempts", len(w.jobs(claim, "provision")), 2)

	all := received()
	equal(t, "announcements", len(all), 2)
	for _, a := range all {
		equal(t, "announced", a, announcement{pv.Name, 1 << 30, string(claim.UID), false})
	}
	equal(t, "nodes with the directory", w.holders(claim), "[node2]")
	w.deletePods("reader")
	w.deleteClaim(claim)
	w.vanished(claim)
	equal(t, "nodes with the directory of a deleted claim", w.holders(claim), "[]")
	left, err := filepath.Glob(directory("2", claim) + "*")
	if err != nil || len(left) > 0 {
		t.Errorf("half copies: %v %v", left, err)
	}
}

// receiver takes announcements about a claim, at a URL that pods reach. The first is answered by an
// error.
func (w *world) receiver(claim string) (url string, received func() []announcement) {
	w.t.Helper()
	var mu sync.Mutex
	var all []announcement
	url = w.serve(func(answer http.ResponseWriter, r *http.Request) {
		a := announcement{key: r.Header.Get("Idempotency-Key")}
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		now, err := kube.CoreV1().PersistentVolumeClaims(w.ns).Get(r.Context(), claim, metav1.GetOptions{})
		a.bound = err != nil || now.Spec.VolumeName != ""
		mu.Lock()
		defer mu.Unlock()
		if all = append(all, a); len(all) == 1 {
			http.Error(answer, "not yet", http.StatusServiceUnavailable)
		}
	})
	return url + "/volumes", func() []announcement {
		mu.Lock()
		defer mu.Unlock()
		return append([]announcement(nil), all...)
	}
}

// A vendor's image is pulled by its digest, with the Secret of the vendor's registry; no registry
// is here, and the claim says that.
func TestProprietaryImageIsPulledWithItsSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "vendor")
	w.apply("proprietary")
	w.secret("acme-registry", corev1.SecretTypeDockerConfigJson, ".dockerconfigjson", `{"auths":{"localhost":{"auth":"YWNtZTphY21l"}}}`)
	w.secret("acme-licence", corev1.SecretTypeOpaque, "licence", "for the tests only")
	claim := w.claim("proprietary", "data")
	const image = "localhost/acme/provisioner@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	w.eventually(toBind, "the claim to say that the image cannot be pulled", func(ctx context.Context) error {
		told, err := events(ctx, claim.Namespace, claim.UID)
		for _, e := range told {
			if (e.Reason == "ErrImagePull" || e.Reason == "ImagePullBackOff") && strings.Contains(e.Note, "localhost/acme/provisioner") {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("of %d events none does", len(told)))
	})
	pod := w.onlyPod(w.onlyJob(claim, "provision"))
	equal(t, "the image", pod.Spec.Containers[0].Image, image)
	equal(t, "pull secrets", fmt.Sprint(pod.Spec.ImagePullSecrets), "[{acme-registry}]")
	w.deleteClaim(claim)
	w.vanished(claim)
}

func (w *world) secret(name string, kind corev1.SecretType, key, value string) {
	w.t.Helper()
	_, err := kube.CoreV1().Secrets(ownNamespace).Create(w.ctx(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind, StringData: map[string]string{key: value},
	}, metav1.CreateOptions{})
	w.must(err, "create the Secret "+name)
	w.remove(func() {
		w.gone(kube.CoreV1().Secrets(ownNamespace).Delete(w.ctx(), name, metav1.DeleteOptions{}), "Secret "+name)
	})
}

// The pod of an isolated node has no network when it begins: it reached the API server before, no
// longer does, and its claim is bound all the same. The bridge of this lab enforces no
// NetworkPolicy, so the test drops the traffic itself, and checks that the shipped policy selects
// this pod.
func TestIsolatedNodeProvisionsWithoutAnyNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "isolated")
	w.apply("isolated", "StorageClass")
	w.class(w.ns, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.copyOf(w.exampleConfig("isolated", "isolated"), func(data map[string]string) { data["pod-template"] += untilCutOff })
	claim := w.claim(w.ns, "data")
	pod := w.waitsForTheCut(claim, "provision")
	w.cut(pod)
	pv := w.bound(claim)
	equal(t, "the path", pv.Spec.NFS.Path, "/exports/kubernetes/"+pv.Name)
	log, err := kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: "cut"}).DoRaw(w.ctx())
	w.must(err, "read what the pod saw")
	equal(t, "what the pod saw: "+string(log), containsAll(string(log), []string{"reached\n", "cut off\n"}), true)

	policy, err := kube.NetworkingV1().NetworkPolicies(nodeNamespace).Get(w.ctx(), "flex-provisioner-isolated", metav1.GetOptions{})
	w.must(err, "look at the policy")
	for key, value := range policy.Spec.PodSelector.MatchLabels {
		equal(t, "the pod's label "+key, pod.Labels[key], value)
	}
	equal(t, "the policy lets something in or out", len(policy.Spec.Ingress)+len(policy.Spec.Egress), 0)
	equal(t, "its directions", len(policy.Spec.PolicyTypes), 2)
	equal(t, "the pod's node", pod.Spec.NodeName, "node1")
	equal(t, "a token is mounted", *pod.Spec.AutomountServiceAccountToken, false)
	if _, err := os.Stat(directory("1", claim)); err != nil {
		t.Errorf("there is no directory: %v", err)
	}
	w.uncut()
	w.deleteClaim(claim)
	w.cut(w.waitsForTheCut(claim, "delete"))
	w.vanished(claim)
	equal(t, "nodes with the directory of a deleted claim", w.holders(claim), "[]")
}

// untilCutOff is an init container that first reaches the API server, and ends when it no longer
// does.
const untilCutOff = `  initContainers:
    - name: cut
      image: ` + bashImage + `
      command:
        - /bin/bash
        - -c
        - |
          api() { timeout 2 bash -c "</dev/tcp/$KUBERNETES_SERVICE_HOST/$KUBERNETES_SERVICE_PORT" 2>/dev/null; }
          until api; do sleep 0.2; done
          echo reached
          while api; do sleep 0.2; done
          echo cut off
      securityContext:
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
`

// waitsForTheCut returns the pod of the claim's Job of a verb, once it has reached the API server.
func (w *world) waitsForTheCut(claim *corev1.PersistentVolumeClaim, verb string) corev1.Pod {
	w.t.Helper()
	var pod corev1.Pod
	w.eventually(toBind, "the pod to have reached the API server", func(ctx context.Context) (err error) {
		pod, err = reachedAPI(ctx, claim, verb)
		return err
	})
	return pod
}

func reachedAPI(ctx context.Context, claim *corev1.PersistentVolumeClaim, verb string) (corev1.Pod, error) {
	jobs, err := jobsOf(ctx, string(claim.UID), verb)
	if err != nil || len(jobs) == 0 {
		return corev1.Pod{}, errors.Join(err, errors.New("it has no Job"))
	}
	pods, err := podsOf(ctx, jobs[len(jobs)-1])
	if err != nil || len(pods) != 1 {
		return corev1.Pod{}, errors.Join(err, fmt.Errorf("its Job has %d pods", len(pods)))
	}
	log, err := kube.CoreV1().Pods(pods[0].Namespace).GetLogs(pods[0].Name, &corev1.PodLogOptions{Container: "cut"}).DoRaw(ctx)
	if err != nil || !strings.HasPrefix(string(log), "reached\n") || pods[0].Status.PodIP == "" {
		return corev1.Pod{}, errors.Join(err, fmt.Errorf("at the address %q it says %q", pods[0].Status.PodIP, log))
	}
	return pods[0], nil
}

// cutTable is the table of node1 that drops what comes from a pod.
const cutTable = "flex-e2e-cut"

// cut drops whatever a pod of node1 sends, on its node.
func (w *world) cut(pod corev1.Pod) {
	w.t.Helper()
	w.whenDone(w.uncut)
	rules := fmt.Sprintf("add table inet %[1]s; add chain inet %[1]s cut { type filter hook forward priority -200; }; "+
		"add rule inet %[1]s cut ip saddr %[2]s drop", cutTable, pod.Status.PodIP)
	out, err := onNode(w.ctx(), "1", "nft", rules)
	w.must(err, "cut the pod off: "+out)
}

func (w *world) uncut() {
	_, _ = onNode(w.ctx(), "1", "nft", "delete table inet "+cutTable)
}
