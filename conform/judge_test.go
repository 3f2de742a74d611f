package conform

import (
	"encoding/base64"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const uid = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50"

func ofGold() (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim, *storagev1.StorageClass) {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "data", UID: uid}, Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: new("gold"), AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size},
	}}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + uid, Annotations: map[string]string{contract.AnnRevision: "flex-provisioner/gold-1"}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, StorageClassName: "gold", MountOptions: []string{"noatime"},
			ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "data", UID: uid},
		},
	}
	return pv, claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, MountOptions: []string{"noatime"}}
}

func TestAPersistentVolumeIsWhatItsSkeletonSays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   string
	}{
		"it is":                {func(*corev1.PersistentVolume) {}, ""},
		"larger, and kept":     {func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = "Retain" }, ""},
		"another class":        {func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "silver" }, "class silver"},
		"no mount options":     {func(pv *corev1.PersistentVolume) { pv.Spec.MountOptions = nil }, "mount options"},
		"no UID":               {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" }, "no claimRef with the UID"},
		"a smaller size":       {func(pv *corev1.PersistentVolume) { pv.Spec.Capacity = nil }, "capacity"},
		"no revision":          {func(pv *corev1.PersistentVolume) { pv.Annotations = nil }, "config-revision"},
		"it is to be recycled": {func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = "Recycle" }, "Recycle"},
	} {
		pv, claim, class := ofGold()
		test.change(pv)
		if got := whyOtherPV(pv, claim, class); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestALineOfAListIsThatOfItsClaim(t *testing.T) {
	t.Parallel()
	good := contract.Listed{UID: uid, Volume: "v", Size: 1 << 30, Namespace: "app", Name: "data", Class: "gold", ClusterUID: "c"}
	for want, change := range map[string]func(*contract.Listed){
		"":               func(*contract.Listed) {},
		"claimNamespace": func(v *contract.Listed) { v.Namespace = "" },
		"claimName":      func(v *contract.Listed) { v.Name = "other" },
		"storageClass":   func(v *contract.Listed) { v.Class = "" },
		"clusterUID":     func(v *contract.Listed) { v.ClusterUID = "" },
		"size 1":         func(v *contract.Listed) { v.Size = 1 },
	} {
		_, claim, _ := ofGold()
		v := good
		change(&v)
		if got := whyOtherLine(v, claim, "c"); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTheSecretsOfAVolumeAreFoundByAnAudit(t *testing.T) {
	t.Parallel()
	own := types.NamespacedName{Namespace: "flex", Name: "pvc-" + uid}
	for name, test := range map[string]struct {
		annotation, ref string
		found           []types.NamespacedName
		want            string
	}{
		"none":                  {"", "", nil, ""},
		"one":                   {own.String(), own.Name, []types.NamespacedName{own}, ""},
		"one of the class":      {"", "shared", nil, ""},
		"without a label":       {own.String(), own.Name, nil, "lacks the label"},
		"without an annotation": {"", own.Name, []types.NamespacedName{own}, "does not name the Secret"},
		"with another name":     {"flex/mine", "", []types.NamespacedName{{Namespace: "flex", Name: "mine"}}, "another name"},
		"that does not exist":   {"flex/pvc-" + uid + "-2", "", nil, "does not exist"},
	} {
		pv, _, _ := ofGold()
		pv.Annotations[contract.AnnSecret] = test.annotation
		if test.ref != "" {
			pv.Spec.ISCSI = &corev1.ISCSIPersistentVolumeSource{SecretRef: &corev1.SecretReference{Namespace: "flex", Name: test.ref}}
		}
		found := map[types.NamespacedName]bool{}
		for _, secret := range test.found {
			found[secret] = true
		}
		if got := whyOtherSecrets(pv, found); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// A URL or a user's name is in many messages. A password is in none.
func TestCredentialsAreTheValuesOfKeysThatSaySo(t *testing.T) {
	t.Parallel()
	got := credentials(map[string][]byte{
		"OS_PASSWORD": []byte("a very long one\n"), "OS_AUTH_URL": []byte("https://keystone.example"), "pass": []byte("short"),
		"cloud.conf": []byte("[Global]\nauth-url = https://keystone.example\npassword = \"swordfish-1\"\n  token: swordfish-2\n"),
		"header":     []byte("Authorization: Bearer swordfish-3\n"),
		"basic":      []byte("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("k8s:swordfish-6")) + "\n"),
		"key":        []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nc3dvcmRmaXNoLTQ=\n-----END OPENSSH PRIVATE KEY-----\n"),
		"ca.crt":     []byte("-----BEGIN CERTIFICATE-----\nc3dvcmRmaXNoLTU=\n-----END CERTIFICATE-----\n"),
	})
	slices.Sort(got)
	if want := []string{
		"a very long one", "azhzOnN3b3JkZmlzaC02", "c3dvcmRmaXNoLTQ=", "k8s:swordfish-6",
		"swordfish-1", "swordfish-2", "swordfish-3", "swordfish-6",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	secrets := map[string]string{`sword"fish`: "login"}
	if leaked(secrets, map[string]string{"here": `{"message":"nothing"}`}) != nil || leaked(secrets, map[string]string{"here": `{"message":"sword\"fish"}`}) == nil {
		t.Error("a credential is found in the wrong text")
	}
}

func TestProvocationsAreOfPromisesThatCanBeProvoked(t *testing.T) {
	t.Parallel()
	good, err := ReadProvocations([]byte("refuses: {accessModes: [ReadWriteMany]}\nno-capacity: {size: 9Ti}\n"))
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(good)), []string{noCapacity, refuses}) {
		t.Errorf("got %v, %v", good, err)
	}
	for _, text := range []string{"delete: {size: 1Gi}", "refuses: {sise: 1Gi}", "refuses: [", "refuses: {size: 1Gi}\n---\nno-capacity: {size: 9Ti}"} {
		if _, err := ReadProvocations([]byte(text)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// The rest of a template stays, and what it says of the CPU is replaced.
func TestAKillableTemplateIsTheOtherOneWithALimit(t *testing.T) {
	t.Parallel()
	run := &trial{Run: &Run{Options: Options{Mount: "busybox"}}}
	for name, text := range map[string]string{
		"none":    "",
		"another": "metadata: {labels: {tier: a}}\nspec: {containers: [{name: proxy, image: x}], nodeSelector: {disk: ssd}}",
		"its own": "spec: {nodeSelector: {disk: ssd}, containers: [{name: provisioner, resources: {requests: {cpu: 200m, memory: 8Mi}, limits: {cpu: 1}}, securityContext: {runAsUser: 7}}]}",
	} {
		got, err := killable(text, run.holder(contract.Delete, 500*time.Millisecond), "")
		var pod corev1.PodTemplateSpec
		if err != nil || yaml.UnmarshalStrict([]byte(got), &pod) != nil || strings.Contains(got, ": null") {
			t.Fatalf("%s: %v\n%s", name, err, got)
		}
		i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == contract.Container })
		r, holder := pod.Spec.Containers[i].Resources, pod.Spec.InitContainers[0]
		if !*pod.Spec.ShareProcessNamespace || r.Limits.Cpu().MilliValue() != 50 || !r.Requests.Cpu().IsZero() || !strings.Contains(holder.Command[2], "delete-*-1)\n") || !strings.Contains(holder.Command[2], "sleep 0.500\n") {
			t.Errorf("%s:\n%s", name, got)
		}
		if text != "" && pod.Spec.NodeSelector["disk"] != "ssd" || name == "its own" && (r.Requests.Memory().String() != "8Mi" || *holder.SecurityContext.RunAsUser != 7) {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	if _, err := killable("spec: [", nil, ""); err == nil {
		t.Error("it is no YAML")
	}
}

// What would stop the processes of this machine is printed.
func TestTheHolderIsAScriptOfAnyShell(t *testing.T) {
	t.Parallel()
	script := (&trial{Run: &Run{Options: Options{Mount: "busybox"}}}).holder(contract.Provision, time.Second).Command[2]
	script = strings.NewReplacer("kill ", "echo kill ", "sleep ", "echo sleep ", "$$$$", "$$").Replace(script)
	if strings.Count(script, "echo") != 3 || strings.Count(script, "$$") != 1 {
		t.Fatalf("it has other commands:\n%s", script)
	}
	for job, want := range map[string]string{
		"provision-1-1": "sleep 1.000\nkill -STOP -1\nsleep 86400\n", "provision-1-2": "sleep 86400\n", "delete-1-1": "sleep 86400\n",
	} {
		cmd := exec.Command("sh", "-c", script)
		cmd.Env = []string{"JOB=" + job}
		if said, err := cmd.Output(); err != nil || string(said) != want {
			t.Errorf("%s: %v, %q", job, err, said)
		}
	}
}

// A terminal breaks a longer line inside a word.
func TestANoteFitsATerminal(t *testing.T) {
	var said strings.Builder
	note := strings.Repeat("word ", 40)
	if err := (Result{Promise: "provision", Verdict: NotTested, Note: note}).Print(&said); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(said.String()) {
		if len(line) > 101 || !strings.Contains(line, "word") {
			t.Errorf("it prints %q", line)
		}
	}
}

// So many blanks that the rest begins at the left edge of a terminal once showed a remedy there that
// the image had written.
func TestALineOfAContainerStaysInItsPlace(t *testing.T) {
	r := Result{Promise: "x", Verdict: Broken, Output: "a\n" + strings.Repeat(" ", 60) + "remedy  b\x1b[31m"}
	want := "| a\n                  | remedy b[31m\n"
	var said strings.Builder
	if err := r.Print(&said); err != nil || !strings.HasSuffix(said.String(), want) {
		t.Errorf("printed is %q, and its end must be %q: %v", said.String(), want, err)
	}
}
