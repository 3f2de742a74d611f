package cut

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// configMap returns a ConfigMap with something large everywhere, and data of a size.
func configMap(size int) *corev1.ConfigMap {
	note := map[string]string{"note": strings.Repeat("x", large)}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "gold", Labels: note, Annotations: note, ManagedFields: managed},
		Data:       map[string]string{"ca": strings.Repeat("x", size)}, BinaryData: map[string][]byte{"ca": make([]byte, large)},
	}
}

// What the caches do not keep of a ConfigMap is a fault of its config, and not a ConfigMap without
// an image.
func TestConfigOfATooLargeConfigMapHasItsSizeAsItsFault(t *testing.T) {
	cm := configMap(config.MaxData)
	cm.Data["image"] = "localhost/gold:v1"
	for _, seen := range []*corev1.ConfigMap{cm, Config(cm), Config(Config(cm))} {
		_, faults := config.Parse(config.SourceOf(seen, &storagev1.StorageClass{}), config.Dispatcher{Provisioner: contract.ProvisionerName})
		if want := `data: Invalid value: "229400 bytes": must have at most 229376 bytes`; len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), want) {
			t.Errorf("faults %v, want %s", faults, want)
		}
	}
}
