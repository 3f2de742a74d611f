package resolve

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// configsFor finds the ConfigMap that a class names, or all those that are labelled for it. It is
// one at least, unless there is a problem.
func (f *Resolver) configsFor(r *Resolved) []*corev1.ConfigMap {
	ns := config.NamespaceFor(r.Class, f.Namespace)
	if why := f.Caches.WhyUnserved(ns); why != "" {
		r.Target.Problem = decide.Problemf(reason.NamespaceNotServed, "the class %s has its config in the namespace %s: %s", r.Class.Name, ns, why)
		return nil
	}
	if name := config.NameFor(r.Class); name != "" {
		return f.namedConfig(r, ns, name)
	}
	found := f.labelledFor(ns, r.Class.Name)
	if len(found) == 0 {
		r.Target.Problem = &decide.Problem{Reason: reason.WaitingForConfig, Note: f.noConfig(r.Class.Name, ns)}
	}
	return found
}

// namedConfig finds the ConfigMap that a class names. That must list the class: whoever creates a
// class does not get the login of a config by that alone.
func (f *Resolver) namedConfig(r *Resolved, ns, name string) []*corev1.ConfigMap {
	cm := f.Caches.Configs.Named(ns + "/" + name)
	switch {
	case cm == nil:
		r.Target.Problem = &decide.Problem{Reason: reason.WaitingForConfig, Note: noNamedConfig(r.Class.Name, ns, name)}
		return nil
	case !config.Lists(cm, r.Class.Name):
		r.From, r.Faulty = cm, true
		r.Target.Problem = decide.Problemf(reason.ClassNotListed, "the class %s names the ConfigMap %s/%s by its parameter %s, and the ConfigMap does not list the class, "+
			"so it does not serve it", r.Class.Name, ns, name, contract.ParamConfig).Remedyf("add the class to data.classes of the ConfigMap")
		return nil
	default:
		return []*corev1.ConfigMap{cm}
	}
}

// labelledFor returns the ConfigMaps of a namespace that are labelled for a class, by name.
func (f *Resolver) labelledFor(namespace, class string) []*corev1.ConfigMap {
	return f.Caches.Configs.In(namespace).By(cluster.ByClass, config.ClassLabel(class))
}

// presentFor returns the ConfigMap that the class of a source has now, beside it, or nil. If the
// class no longer exists, it is one with its label, or the source's own if that lists the class.
func (f *Resolver) presentFor(src config.Source) *corev1.ConfigMap {
	class := f.Caches.Classes.Named(src.Class)
	if class != nil && config.NameFor(class) != "" {
		return f.listing(src.Namespace, config.NameFor(class), src.Class)
	}
	labelled := f.labelledFor(src.Namespace, src.Class)
	own := slices.IndexFunc(labelled, func(cm *corev1.ConfigMap) bool { return cm.Name == src.Name })
	switch {
	case len(labelled) == 1:
		return labelled[0]
	case own >= 0:
		return labelled[own]
	case class == nil && len(labelled) == 0:
		return f.listing(src.Namespace, src.Name, src.Class)
	default:
		return nil
	}
}

// listing returns a ConfigMap by its name, if it lists a class.
func (f *Resolver) listing(namespace, name, class string) *corev1.ConfigMap {
	if cm := f.Caches.Configs.Named(namespace + "/" + name); cm != nil && config.Lists(cm, class) {
		return cm
	}
	return nil
}

// noConfig says that no ConfigMap is labelled for a class, and names the one that may be meant for it.
// The name of a class may be longer than the value of a label may be.
func (f *Resolver) noConfig(class, namespace string) reason.Note {
	if len(validation.IsValidLabelValue(class)) == 0 {
		near, remedy := f.nearConfig(class, namespace)
		return reason.Note{
			Cause: fmt.Sprintf("the class %s has no provisioner config%s", class, near),
			Remedy: fmt.Sprintf("%screate a ConfigMap in the namespace %s with the labels %s=%s and %s=%s, and at least the keys image, verbs and, unless write-pv is dispatcher, service-account-name",
				remedy, namespace, contract.LabelType, contract.TypeConfig, contract.LabelStorageClass, class),
		}
	}
	return reason.Note{
		Cause: fmt.Sprintf("the class %s has no provisioner config, and its name is too long for the label %s of one", class, contract.LabelStorageClass),
		Remedy: fmt.Sprintf("create the class anew with the parameter %s, the name of a ConfigMap in the namespace %s that has the label %s=%s, and the class in data.classes",
			contract.ParamConfig, namespace, contract.LabelType, contract.TypeConfig),
	}
}

// nearConfig says that a ConfigMap may be meant for a class and does not serve it, and what to do
// then. The ConfigMap is in another config namespace, or is labelled for a class that does not
// exist, or for none. It returns nothing if there is none, or several that may be meant. The
// claim's user reads this, so the namespaces of other administrators are not named: a command finds
// them.
func (f *Resolver) nearConfig(class, namespace string) (near, remedy string) {
	if len(f.Caches.Configs.By(cluster.ByClass, config.ClassLabel(class))) > 0 {
		return fmt.Sprintf(" in the namespace %s. A ConfigMap of another config namespace is labelled for it", namespace),
			fmt.Sprintf("find that ConfigMap by kubectl get configmaps -A -l %s=%s. If you know who created it, and it is meant for this class, create the class anew with its namespace "+
				"as the parameter %s. Otherwise ", contract.LabelStorageClass, class, contract.ParamConfigNamespace)
	}
	astray := slices.DeleteFunc(f.Caches.Configs.In(namespace).All(), f.mayServe)
	if len(astray) != 1 {
		return "", ""
	}
	has := "has no label " + contract.LabelStorageClass
	if label := astray[0].Labels[contract.LabelStorageClass]; label != "" {
		has = fmt.Sprintf("has the label %s=%s, and no such class exists", contract.LabelStorageClass, label)
	}
	return fmt.Sprintf(". The ConfigMap %s/%s %s", namespace, astray[0].Name, has), "correct its label if it is meant for this class, or "
}

// mayServe reports whether a ConfigMap is labelled for a class that exists, or lists the classes that
// may name it.
func (f *Resolver) mayServe(cm *corev1.ConfigMap) bool {
	return f.Caches.Classes.Named(cm.Labels[contract.LabelStorageClass]) != nil || config.IsListing(cm)
}

// noNamedConfig says that the ConfigMap that a class names does not exist.
func noNamedConfig(class, namespace, name string) reason.Note {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return reason.Note{
			Cause:  fmt.Sprintf("the class %s has in its parameter %s what cannot be the name of a ConfigMap", class, contract.ParamConfig),
			Remedy: "create the class anew with the name of a ConfigMap in the namespace " + namespace,
		}
	}
	return reason.Note{
		Cause: fmt.Sprintf("the class %s names the ConfigMap %s by its parameter %s, and the namespace %s has no provisioner config of that name",
			class, name, contract.ParamConfig, namespace),
		Remedy: fmt.Sprintf("create it with the label %s=%s, and with the class in data.classes", contract.LabelType, contract.TypeConfig),
	}
}
