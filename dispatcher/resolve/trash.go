package resolve

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Trash returns which released volumes of a config wait for their delete: as many as any of the
// ConfigMaps keeps that the class has now, since a new one may stand beside the old one for a while,
// or that has the name of the revision's, which may have lost its label. Without any it is what the
// revision keeps.
func (f *Resolver) Trash(made config.Config) (t config.Trash, fault *field.Error) {
	present := f.labelledFor(made.Source.Namespace, made.Source.Class)
	for _, cm := range []*corev1.ConfigMap{
		f.presentFor(made.Source), f.Caches.Configs.Named(made.Source.Namespace + "/" + made.Source.Name),
	} {
		if cm != nil {
			present = append(present, cm)
		}
	}
	if len(present) == 0 {
		return config.TrashOf(made.Source.Data)
	}
	for i, cm := range present {
		one, fault := config.TrashOf(cm.Data)
		if fault != nil {
			return config.Trash{}, fault
		}
		if i == 0 {
			t = one // a config without a limit has the largest of all
		}
		t = t.Or(one)
	}
	return t, nil
}
