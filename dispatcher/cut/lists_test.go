package cut

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// long fills every list, map and text below a value: the lists with so many entries, and those in
// them with two.
func long(v reflect.Value, entries int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		long(v.Elem(), entries)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				long(v.Field(i), entries)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), entries, entries))
		for i := range entries {
			long(v.Index(i), 2)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range entries {
			value := reflect.New(v.Type().Elem()).Elem()
			long(value, 2)
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", i)).Convert(v.Type().Key()), value)
		}
	case reflect.String:
		v.SetString(strings.Repeat("x", 2*longestText))
	default: // numbers have one size
	}
}

// entries is how many a kubelet writes into each list.
const entries = 100

// A kubelet writes the status of its node, of its pods and of their claims, and of each as much as an
// object may have. It also writes annotations and finalizers of its pods.
func TestCachesKeepFewBytesOfWhatAKubeletWrites(t *testing.T) {
	_, pod := jobAndPod(t, "")
	long(reflect.ValueOf(&pod.Status).Elem(), entries)
	for i := range entries {
		pod.Status.Conditions[i].Type = readConditions[i%len(readConditions)]
	}
	for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for i := range all {
			all[i].Name = contract.Container
		}
	}
	long(reflect.ValueOf(&pod.Finalizers).Elem(), entries)
	pod.Annotations = map[string]string{jobs.AnnUIDs: strings.Repeat("x", large), contract.AnnRevision: strings.Repeat("x", large)}
	strange := pod.DeepCopy()
	long(reflect.ValueOf(&strange.Status).Elem(), entries)
	for i := range entries {
		strange.Status.ContainerStatuses[i].Name = fmt.Sprint("container", i)
		strange.Status.Conditions[i].Type = corev1.PodConditionType(fmt.Sprint("condition", i))
	}
	node := &corev1.Node{}
	long(reflect.ValueOf(&node.Status).Elem(), entries)
	node.Status.Conditions[1].Type = corev1.NodeReady
	claim := fixture.Claim()
	long(reflect.ValueOf(&claim.Status).Elem(), entries)
	for name, tt := range map[string]struct {
		obj  metav1.Object
		most int
	}{
		"a pod": {pod, 128 << 10}, "a pod of other containers": {strange, 32 << 10}, "a node": {node, 8 << 10}, "a claim": {claim, 16 << 10},
	} {
		text, err := json.Marshal(Object(tt.obj))
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %d bytes", name, len(text)); len(text) > tt.most {
			t.Errorf("%s: %d bytes of JSON, want at most %d", name, len(text), tt.most)
		}
	}
}

// A tenant's pod had 5,200 inline volumes, whose names kube-controller-manager wrote into the node's
// status. Only the first 5,000 names were kept, and the one of a mounted volume was not among them.
func TestCachesKeepAllVolumesOfANode(t *testing.T) {
	const mounted, used = "kubernetes.io/iscsi/10.0.0.1:3260:iqn.v:1", "kubernetes.io/iscsi/10.0.0.1:3260:iqn.v:2"
	node := &corev1.Node{}
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{used}
	for i := range 30_000 { // as many as an object has room for
		node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: corev1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/fc/[%d]", i))})
	}
	without := VolumesOf(Node(node))
	node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: mounted}, corev1.AttachedVolume{Name: used})
	all := VolumesOf(Node(Node(node)))
	for _, name := range []corev1.UniqueVolumeName{mounted, used, "kubernetes.io/fc/[0]", "kubernetes.io/fc/[29999]"} {
		if !all.Has(VolumeKey(name)) {
			t.Errorf("%s is not kept", name)
		}
	}
	if all.Has(VolumeKey("kubernetes.io/fc/[30000]")) || without.Has(VolumeKey(mounted)) {
		t.Error("a volume is kept that the node does not name")
	}
	if got := all.Without(without); len(got) != 1 || got[0] != VolumeKey(mounted) || without.Without(all) != nil {
		t.Errorf("the difference is %q", got)
	}
	if got := len(all); got > 250_000 {
		t.Errorf("%d bytes are kept", got)
	}
}

// Neither protobuf nor the API server checks that a text is UTF-8. A kubelet wrote the mark of a node that
// was cut: it ended every dispatcher, and hid what kube-controller-manager had attached.
func TestAKubeletFeignsNoNodeThatWasCut(t *testing.T) {
	const attached = "kubernetes.io/iscsi/10.0.0.1:3260:iqn.v:1"
	for _, forged := range []corev1.UniqueVolumeName{"", "\xff", "\xff1234567", "\xff12345678", corev1.UniqueVolumeName(VolumeKey("x"))} {
		node := &corev1.Node{}
		node.Status.VolumesInUse = []corev1.UniqueVolumeName{forged}
		node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: attached}}
		got := VolumesOf(Node(node))
		if !got.Has(VolumeKey(attached)) || len(got.Without("")) != 2 {
			t.Errorf("%q hides a volume that is attached", forged)
		}
		if kept := Node(node).Status.VolumesInUse; len(kept) != 1 || len(kept[0]) > 3*keySize {
			t.Errorf("of %q is kept: %q", forged, kept)
		}
	}
}

// What was cut must not be removed by a patch, and what is read must not be cut.
func TestAPodKeepsTheFinalizerOfItsRecord(t *testing.T) {
	_, pod := jobAndPod(t, "")
	pod.Finalizers = []string{"example.com/other", jobs.FinalizerRecord}
	if kept := Pod(pod).Finalizers; len(kept) != 1 || kept[0] != jobs.FinalizerRecord {
		t.Errorf("the finalizers %v are kept", kept)
	}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionFalse},
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"},
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no room"},
	}
	if kept := Pod(pod).Status.Conditions; len(kept) != 2 || kept[0] != pod.Status.Conditions[1] || kept[1] != pod.Status.Conditions[2] {
		t.Errorf("the conditions %v are kept", kept)
	}
}
