package patch_test

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// sent keeps the metadata of a patch.
type sent struct{ metadata map[string]any }

//nolint:revive // client-go's own arguments
func (s *sent) Patch(_ context.Context, name string, _ types.PatchType, body []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Pod, error) {
	var all struct {
		Metadata map[string]any `json:"metadata"`
	}
	err := json.Unmarshal(body, &all)
	s.metadata = all.Metadata
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}, err
}

// The API server refuses it if there is another object of that name by now, and a merge also if it
// has changed.
func TestPatchNamesWhatWasObserved(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "uid", ResourceVersion: "7"}}
	for name, tt := range map[string]struct {
		write   func(context.Context, patch.Patcher[*corev1.Pod], *corev1.Pod, patch.Fields) error
		version any
	}{
		"merge": {func(ctx context.Context, c patch.Patcher[*corev1.Pod], pod *corev1.Pod, f patch.Fields) error {
			_, err := patch.Merge(ctx, c, pod, f)
			return err
		}, "7"},
		"strategic": {func(ctx context.Context, c patch.Patcher[*corev1.Pod], pod *corev1.Pod, f patch.Fields) error {
			_, err := patch.Strategic(ctx, c, pod, f)
			return err
		}, nil},
	} {
		var got sent
		err := tt.write(t.Context(), &got, pod, patch.Fields{})
		if err != nil || got.metadata["uid"] != "uid" || got.metadata["resourceVersion"] != tt.version {
			t.Errorf("%s: %v, %v", name, got.metadata, err)
		}
	}
}

// The list with one empty entry is how a client asks for it: isResetManagedFields in apimachinery's
// util/managedfields/internal.
func TestAnUntrackedPatchKeepsWhatElseItWrites(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "uid"}}
	for name, change := range map[string]patch.Fields{"with metadata": patch.Annotate(map[string]string{"a": "b"}), "without": patch.DropGate("gate")} {
		_, annotates := change["metadata"]
		var got sent
		_, err := patch.Strategic(t.Context(), &got, pod, patch.Untracked(change))
		if _, found := got.metadata["annotations"]; err != nil || found != annotates || got.metadata["uid"] != "uid" {
			t.Errorf("%s: %v, %v", name, got.metadata, err)
		}
		if managed, err := json.Marshal(got.metadata["managedFields"]); err != nil || string(managed) != "[{}]" {
			t.Errorf("%s: managedFields is %s, %v", name, managed, err)
		}
	}
}
