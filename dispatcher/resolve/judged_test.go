package resolve

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

func configOf(image string) (*corev1.ConfigMap, *storagev1.StorageClass) {
	cm := &corev1.ConfigMap{Data: map[string]string{"image": image, "service-account-name": "nfs"}}
	cm.Namespace, cm.Name = "flex-provisioner", "nfs"
	class := &storagev1.StorageClass{}
	class.Name, class.ReclaimPolicy = "nfs", new(corev1.PersistentVolumeReclaimRetain)
	return cm, class
}

// A source that changes is judged anew though its name stays; one that does not change is judged
// once.
func TestASourceIsJudgedOnceAndByItsContent(t *testing.T) {
	f := &Resolver{Dispatcher: config.Dispatcher{Provisioner: "flex-provisioner.io"}, Judged: &Judged{}}
	for range 2 {
		if found := f.judgePresent(configOf("registry.example/nfs:1")); len(found.Faults) > 0 {
			t.Fatalf("a config without faults is refused: %v", found.Faults)
		}
	}
	if kept := len(f.Judged.bySource.judgements); kept != 1 {
		t.Errorf("%d judgements of one source are kept, not 1", kept)
	}
	for range 2 {
		if found := f.judgePresent(configOf("")); len(found.Faults) == 0 {
			t.Error("a config without an image is accepted, because the one before it was")
		}
	}
}

func TestAnObjectIsDecodedOnce(t *testing.T) {
	f := &Resolver{Dispatcher: config.Dispatcher{Provisioner: "flex-provisioner.io"}, Judged: &Judged{}}
	cm, class := configOf("registry.example/nfs:1")
	src := config.SourceOf(cm, class)
	revision := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: src.Encode()}}
	revision.Namespace, revision.Name = cm.Namespace, src.RevisionName()
	want := f.JudgeStored(revision)
	revision.Data.Raw = nil // an object of a cache does not change: it is not looked into again
	if got := f.JudgeStored(revision); got.Damaged != nil || got.Config.Image != want.Config.Image || got.Source.Revision() != src.Revision() {
		t.Errorf("got %+v, want %+v", got, want)
	}
	damaged := &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte("{")}}
	if f.JudgeStored(damaged).Damaged == nil {
		t.Error("a damaged revision is accepted")
	}
}

func TestJudgementsAreBounded(t *testing.T) {
	f := &Resolver{Dispatcher: config.Dispatcher{Provisioner: "flex-provisioner.io"}, Judged: &Judged{}}
	for i := range mostJudged + 1 {
		f.judgePresent(configOf(fmt.Sprint("registry.example/nfs:", i)))
	}
	if kept := max(len(f.Judged.bySource.judgements), len(f.Judged.byObject.judgements)); kept > mostJudged {
		t.Errorf("%d judgements are kept, more than %d", kept, mostJudged)
	}
}

// An administrator's editor saves a ConfigMap again and again: what was found in each is not kept
// for ever, though they are few.
func TestJudgementsOfLargeConfigsAreBounded(t *testing.T) {
	f := &Resolver{Dispatcher: config.Dispatcher{Provisioner: "flex-provisioner.io"}, Judged: &Judged{}}
	for i := range 400 {
		cm, class := configOf(fmt.Sprint("registry.example/nfs:", i))
		cm.Data["ca"] = strings.Repeat("x", 100<<10)
		f.judgePresent(cm, class)
	}
	if kept := len(f.Judged.bySource.judgements); kept > mostBytes/(100<<10) || kept != len(f.Judged.byObject.judgements) {
		t.Errorf("%d judgements of 100 KiB are kept, and %d by their objects", kept, len(f.Judged.byObject.judgements))
	}
}

// Each claim that waits for a faulty config has its faults reported whenever it is observed.
func TestFaultsAreReportedInFewBytes(t *testing.T) {
	f := &Resolver{Dispatcher: config.Dispatcher{Provisioner: "flex-provisioner.io"}, Judged: &Judged{}}
	cm, class := configOf("registry.example/nfs:1")
	cm.Data["node-selector"] = strings.Repeat("x,", 2000)
	cm.Data["run-on"] = strings.Repeat("x", 4000)
	if said := f.judgePresent(cm, class).Said; len(said) > longestFaults || !strings.Contains(said, "data[node-selector]") {
		t.Errorf("%d bytes: %s", len(said), said)
	}
}
