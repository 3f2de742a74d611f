package run_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// An audit reads what is of its provisioner, and of Secrets those of claims.
func TestAnAuditReadsWhatIsOfItsProvisioner(t *testing.T) {
	t.Parallel()
	managed := map[string]string{"app.kubernetes.io/managed-by": "flex-dispatcher"}
	client := fake.NewClientset(
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "data"}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "ours", Annotations: map[string]string{contract.AnnClaimUID: "u"}}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "anothers", Annotations: map[string]string{
			contract.AnnClaimUID: "v", contract.AnnProvisionedBy: "other.example.com",
		}}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "ours", Labels: managed}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "anything"}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "ours", Labels: managed}},
	)
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secret := func(name string, labels map[string]string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: name, Labels: labels},
		}
	}
	objects := metadatafake.NewSimpleMetadataClient(scheme, secret("pvc-u", map[string]string{contract.LabelClaimUID: "u"}), secret("cinder", nil))
	auditor := &run.Auditor{Client: client, Objects: objects, Clock: clock.RealClock{}, Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespace: "flex-provisioner"}
	s, err := auditor.ReadState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, claim := range s.Claims {
		names = append(names, "claim "+claim.Name)
	}
	for _, pv := range s.PVs {
		names = append(names, "PV "+pv.Name)
	}
	for _, job := range s.Jobs {
		names = append(names, "Job "+job.Name)
	}
	for _, pod := range s.Pods {
		names = append(names, "pod "+pod.Name)
	}
	for _, secret := range s.Secrets {
		names = append(names, "Secret "+secret.Name)
	}
	if diff := cmp.Diff([]string{"claim data", "PV ours", "Job ours", "pod ours", "Secret pvc-u"}, names); diff != "" {
		t.Error(diff)
	}
}

// A tenant with 4,000 claims of 250 KiB, or with Secrets, Jobs and pods that bear the dispatcher's labels, ended each
// audit by its memory.
func TestAnAuditKeepsLittleOfWhatUsersWrite(t *testing.T) {
	t.Parallel()
	written := map[string]string{"text": strings.Repeat("x", 250<<10)}
	labels := map[string]string{"app.kubernetes.io/managed-by": "flex-dispatcher", contract.LabelClaimUID: "u"}
	meta := func(namespace, name string) metav1.ObjectMeta {
		labels := maps.Clone(labels)
		for i := range map[string]int{"tenant": 500}[namespace] {
			labels[fmt.Sprintf("text-%d", i)] = strings.Repeat("x", 60)
		}
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: written, Labels: labels, Finalizers: []string{"other/one", jobs.FinalizerRecord}}
	}
	client := fake.NewClientset(
		&corev1.PersistentVolumeClaim{ObjectMeta: meta("tenant", "data")}, &batchv1.Job{ObjectMeta: meta("tenant", "forged")}, &corev1.Pod{ObjectMeta: meta("tenant", "forged")},
		&corev1.Pod{ObjectMeta: meta("flex-provisioner", "ours"), Status: corev1.PodStatus{Message: written["text"]}},
	)
	var whole []string
	client.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		kind := a.GetResource().Resource
		if limit := a.(clienttesting.ListActionImpl).ListOptions.Limit; kind != "storageclasses" && (limit < 1 || limit > 100) {
			whole = append(whole, kind)
		}
		return false, nil, nil
	})
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := metadatafake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta("tenant", "forged")})
	auditor := &run.Auditor{Client: client, Objects: objects, Clock: clock.RealClock{}, Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespace: "flex-provisioner"}
	s, err := auditor.ReadState(t.Context())
	if err != nil || len(s.Claims)+len(s.UnservedJobs)+len(s.UnservedPods)+len(s.Pods)+len(s.Secrets) != 5 {
		t.Fatalf("read %+v, %v", s, err)
	}
	text, err := json.Marshal(s)
	if err != nil || len(text) > 16<<10 {
		t.Errorf("%d bytes are kept, %v", len(text), err)
	}
	if len(whole) > 0 {
		t.Errorf("of %q all are listed at once", whole)
	}
	if f := s.Pods[0].Finalizers; len(f) != 2 || f[1] != jobs.FinalizerRecord {
		t.Errorf("the finalizers are %q: the command that removes ours names its place", f)
	}
}

func TestWhatAnImageListsIsRead(t *testing.T) {
	t.Parallel()
	got, err := run.ReadVolumes(strings.NewReader(`{"uid":"u","volume":"v1","name":"pvc-u","status":"in-use","size":2147483648,"claimName":"data"}` + "\n" + `{"uid":"w","volume":"v2","createdAt":"2026-01-01T11:00:00Z"}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]audit.Volume{{UID: "u", Volume: "v1", Size: 2 << 30, Name: "data"}, {UID: "w", Volume: "v2", CreatedAt: "2026-01-01T11:00:00Z"}}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := run.ReadVolumes(strings.NewReader("no JSON\n")); err == nil || !strings.Contains(err.Error(), "no JSON") {
		t.Errorf("the error %v does not show the line", err)
	}
}

// The list of one storage once took more memory than the audits of all classes have.
func TestAListHasALimitOfVolumesAndOfTheirNames(t *testing.T) {
	t.Parallel()
	line := `{"volume":"a"}` + "\n"
	if got, err := run.ReadVolumes(strings.NewReader(strings.Repeat(line, 200_000))); err != nil || len(got) != 200_000 {
		t.Errorf("of 200,000 volumes %d are read: %v", len(got), err)
	}
	for want, list := range map[string]string{
		"more than the 200000 volumes": strings.Repeat(line, 200_001),
		"a name of 1025 bytes":         `{"volume":"` + strings.Repeat("a", 1025) + `"}`,
	} {
		if _, err := run.ReadVolumes(strings.NewReader(list)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// Names that a storage and an image have chosen, printed to a terminal, neither end a line nor move
// the cursor. A command that is printed does only what it says.
func TestNothingOfAStorageLeavesItsLine(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"x; touch PWNED #", "v\nSecretLeft: secret/a\n    touch PWNED", "\x1b[31m\a", "x'$(touch PWNED)`touch PWNED`", "a b", "\u202ex"} {
		found := audit.Check(audit.State{Now: time.Now(), ClusterUID: "c", Volumes: map[string][]audit.Volume{"gold": {
			{UID: "u", Volume: name, Namespace: name, Name: name, Class: name, ClusterUID: "c", CreatedAt: name},
		}}})
		var out strings.Builder
		if err := run.PrintFindings(&out, found); err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != 2 || strings.ContainsFunc(strings.Join(lines, ""), func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%q is printed as %q", name, out.String())
		}
		dir := t.TempDir()
		shell := exec.CommandContext(t.Context(), "bash", "--norc", "-c", "flex-dispatcher() { :; }; delete() { :; }\n"+lines[1])
		shell.Dir = dir
		_ = shell.Run() // a sentence is no command
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("%q: the command %s made %v, %v", name, lines[1], made, err)
		}
	}
}

func TestFindingsArePrintedWithTheirFix(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run.PrintFindings(&out, []audit.Finding{
		{Kind: audit.SecretLeft, Object: "secret/pvc-u -n flex-provisioner", Age: time.Hour + 3*time.Second, Why: "no PersistentVolume names it", Fix: "kubectl delete secret pvc-u"},
		{Kind: audit.VolumeLeft, Object: "volume v1", Size: 2 << 30, Why: "there is no PersistentVolume of it", Fix: "delete the volume v1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `SecretLeft: secret/pvc-u -n flex-provisioner, 1h0m3s old: no PersistentVolume names it
    kubectl delete secret pvc-u
VolumeLeft: volume v1, 2Gi: there is no PersistentVolume of it
    delete the volume v1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
