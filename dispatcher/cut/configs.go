package cut

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Config keeps the data of a ConfigMap. Of data that are too large it keeps the size, and the
// classes and namespaces that it lists, as far as a config has room. 1,500 ConfigMaps of 1 MiB
// would need more memory than the limit.
func Config(cm *corev1.ConfigMap) *corev1.ConfigMap {
	out := &corev1.ConfigMap{ObjectMeta: cutMeta(&cm.ObjectMeta), Data: cm.Data}
	out.Labels = onlyKeys(cm.Labels, contract.LabelType, contract.LabelStorageClass)
	out.Finalizers = nil
	if size := max(config.DataSize(cm.Data), config.DroppedSize(cm)); size > config.MaxData {
		out.Data, out.Annotations = config.OnlyLists(cm.Data), map[string]string{config.AnnCut: strconv.Itoa(size)}
	}
	return out
}

// cutAccount keeps that a ServiceAccount is there, and that it is a provisioner's.
func cutAccount(account *corev1.ServiceAccount) *corev1.ServiceAccount {
	out := &corev1.ServiceAccount{ObjectMeta: cutMeta(&account.ObjectMeta)}
	out.Labels, out.Finalizers = onlyKeys(account.Labels, contract.LabelProvisioner), nil
	return out
}
