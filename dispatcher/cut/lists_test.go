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
	"github.com/flex-provisioner/flex-provisioner/internal/fixture"
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

// The caches have an index of the volumes by name. Names of few bytes once cost a hundred times
// their size.
func TestCachesKeepAllVolumesOfANodeThatIsHonest(t *testing.T) {
	for written, kept := range map[int]int{1000: 1000, 200_000: 5000} {
		node := &corev1.Node{}
		for i := range written {
			node.Status.VolumesInUse = append(node.Status.VolumesInUse, corev1.UniqueVolumeName(fmt.Sprint(i)))
		}
		if got := len(Node(node).Status.VolumesInUse); got != kept {
			t.Errorf("of %d volumes %d are kept, want %d", written, got, kept)
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
