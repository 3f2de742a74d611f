//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// misbehaviour is what an image does wrong, and what is seen of it.
type misbehaviour struct {
	// does is what testdata/misbehaving-provisioner.sh calls it.
	does string
	// reason and words of the claim's event.
	reason string
	words  []string
	// serves: the claim is bound all the same.
	serves bool
}

// Whatever an image does wrong, an event of the claim says so, and the claim is bound: at once
// where the volume fits it, else as soon as the image is fixed, without any manual clean-up.
func TestMisbehavingImageIsReportedAndRecoveredFrom(t *testing.T) {
	t.Parallel()
	for _, m := range []misbehaviour{
		{"nothing", "ProvisioningFailed", []string{"exit code 0, but it did not create the PersistentVolume pvc-", "/etc/flex/pv.json"}, false},
		{"size", "ProvisioningFailed", []string{"exit code 0, but", "has the capacity 1Mi, and the claim requests 1Gi"}, false},
		{"mode", "ProvisioningFailed", []string{"has the volumeMode Block, and the claim requests Filesystem"}, false},
		{"access", "ProvisioningFailed", []string{"lacks the access mode ReadWriteOnce"}, false},
		{"class", "VolumeDiffers", []string{`has the class "another"`}, true},
		{"name", "ProvisioningFailed", []string{"exit code 1"}, false},
		{"claim", "ProvisioningFailed", []string{"exit code 1"}, false},
		{"fails", "ProvisioningSucceeded", []string{"although the container ended with exit code 1"}, true},
		{"two", "ProvisioningSucceeded", []string{"is ready"}, true},
		{"hangs", "ProvisioningFailed", []string{"DeadlineExceeded"}, false},
		{"forks", "ProvisioningSucceeded", []string{"is ready"}, true},
		{"talks", "ProvisioningFailed", []string{"that was much", "exit code 1"}, false},
		{"binary", "ProvisioningFailed", []string{" was[31m binary", "exit code 1"}, false},
	} {
		t.Run(m.does, func(t *testing.T) {
			t.Parallel()
			m.run(t)
		})
	}
}

func (m misbehaviour) run(t *testing.T) {
	t.Helper()
	w := newWorld(t, "wrong-"+m.does)
	w.class(w.ns)
	cm := w.config(ownNamespace, w.ns, w.misbehaving(m.does))
	claim := w.claim(w.ns, "data")
	if m.serves {
		w.bound(claim)
	} else {
		w.failed(claim, 1, toBind)
	}
	w.event(claim, m.reason, m.words...)
	m.mustBeOutput(w, claim)
	if !m.serves {
		cm.Data = w.misbehaving("")
		_, err := kube.CoreV1().ConfigMaps(cm.Namespace).Update(w.ctx(), cm, metav1.UpdateOptions{})
		w.must(err, "fix the image")
	}
	pv := w.bound(claim)
	equal(t, "the size", pv.Spec.Capacity.Storage().String(), "1Gi")
	if m.serves && len(w.jobs(claim, "delete")) > 0 {
		t.Errorf("a volume that serves was deleted by %v", names(w.jobs(claim, "delete")))
	}
	_, err := kube.CoreV1().PersistentVolumes().Get(w.ctx(), "mine-"+string(claim.UID), metav1.GetOptions{})
	equal(t, "a PV under another name is there", err == nil, false)
}

// mustBeOutput checks that the part of an image's message that is kept is short and can be printed.
func (m misbehaviour) mustBeOutput(w *world, claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	if m.does != "talks" && m.does != "binary" {
		return
	}
	job := w.jobs(claim, "provision")[0]
	event := w.event(&job, "ContainerOutput", "claim: ")
	if len(event.Note) > 1024 {
		w.t.Errorf("%d bytes of output are in an event", len(event.Note))
	}
	if i := strings.IndexFunc(event.Note, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		w.t.Errorf("the output has %q in it", event.Note[i:])
	}
}

// misbehaving is a config of testdata/misbehaving-provisioner.sh, run by the bash image.
func (w *world) misbehaving(how string) map[string]string {
	w.t.Helper()
	script, err := os.ReadFile("testdata/misbehaving-provisioner.sh")
	w.must(err, "read the script")
	command, err := yaml.Marshal([]string{"/bin/bash", "-c", string(script), "provision"})
	w.must(err, "encode the script")
	timeout := "5m"
	if how == "hangs" {
		timeout = "10s"
	}
	return map[string]string{
		"image": bashImage, "verbs": "provision,delete", "service-account-name": "cinder-provisioner",
		"timeout": timeout, "misbehave": how,
		"pod-template": fmt.Sprintf("spec:\n  containers:\n    - name: provisioner\n      command:\n%s", indented(string(command), 8)),
	}
}

func indented(text string, by int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.Repeat(" ", by) + line)
	}
	return out.String()
}
