package resolve

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// KeepDeleted returns how long a released volume of a config waits before it is deleted: the longest
// time of the ConfigMaps that the class has now, since a new one may stand beside the old one for a
// while, or, without any, that of the revision.
func (f *Resolver) KeepDeleted(made config.Config) (keep time.Duration, fault *field.Error) {
	present := f.labelledFor(made.Source.Namespace, made.Source.Class)
	if cm := f.presentFor(made.Source); cm != nil {
		present = append(present, cm)
	}
	if len(present) == 0 {
		return config.KeepDeleted(made.Source.Data)
	}
	for _, cm := range present {
		one, fault := config.KeepDeleted(cm.Data)
		if fault != nil {
			return 0, fault
		}
		keep = max(keep, one)
	}
	return keep, nil
}
