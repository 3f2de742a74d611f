package resolve

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Trash returns which released volumes of a config wait for their delete: what the ConfigMaps of
// its class say, or without any what they said last.
func (f *Resolver) Trash(made config.Config) (config.Trash, *field.Error) {
	if t, fault, ok := f.TrashAtPresent(made.Source); ok {
		return t, fault
	}
	stored := f.Caches.Revisions.Named(made.Source.Revision())
	if stored == nil {
		return config.TrashOf(made.Source.Data)
	}
	return config.Noted(stored, made.Source)
}

// TrashAtPresent returns which released volumes wait for their delete, by the present ConfigMaps.
// Those are all that the class of their source has, since a new one may stand beside the old one
// for a while. The one of the source's name counts, too, since it may have lost its label. As many
// wait as any of these keeps. Without any, nothing says it.
func (f *Resolver) TrashAtPresent(made config.Source) (t config.Trash, fault *field.Error, says bool) {
	present := f.labelledFor(made.Namespace, made.Class)
	for _, cm := range []*corev1.ConfigMap{
		f.presentFor(made), f.Caches.Configs.Named(made.Namespace + "/" + made.Name),
	} {
		if cm != nil {
			present = append(present, cm)
		}
	}
	for i, cm := range present {
		one, fault := config.TrashOf(cm.Data)
		if fault != nil {
			return config.Trash{}, fault, true
		}
		if i == 0 {
			t = one // a config without a limit has the largest of all
		}
		t = t.Or(one)
	}
	return t, nil, len(present) > 0
}
