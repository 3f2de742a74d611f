package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// Class is a storage class, with the config under which its storage is listed.
type Class struct {
	Name   string
	Config config.Config
	// UID is that of the config's ConfigMap.
	UID string
	// Fault is why its storage cannot be listed, nil if it can.
	Fault error

	object *storagev1.StorageClass
}

// IsOnNodes reports whether the volumes of the class are on nodes, each on the one where it was made.
func (c Class) IsOnNodes() bool { return c.Config.RunOn == config.RunOnSelected }

// errUnlisted is the fault of a class whose storage is not to be listed, and need not be.
var errUnlisted = errors.New("its storage is not listed")

// Classes returns the classes of the provisioner with these names, without names all of them, by
// name.
func (a *Auditor) Classes(ctx context.Context, names ...string) ([]Class, error) {
	list, err := a.Client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the StorageClasses: %w", err)
	}
	var out []Class
	for i := range list.Items {
		class := &list.Items[i]
		if class.Provisioner != a.Provisioner || len(names) > 0 && !slices.Contains(names, class.Name) {
			continue
		}
		one, err := a.class(ctx, class)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	for _, name := range names {
		if !slices.ContainsFunc(out, func(c Class) bool { return c.Name == name }) {
			out = append(out, Class{Name: name, Fault: fmt.Errorf("no StorageClass of this name has the provisioner %s", a.Provisioner)})
		}
	}
	slices.SortFunc(out, func(a, b Class) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// class finds the config of a class.
func (a *Auditor) class(ctx context.Context, class *storagev1.StorageClass) (Class, error) {
	out, ns := Class{Name: class.Name, object: class}, config.NamespaceFor(class, a.Namespace)
	var found []*corev1.ConfigMap
	configs := metav1.ListOptions{LabelSelector: contract.LabelType + "=" + contract.TypeConfig, Limit: cluster.LargeOfAPage}
	err := admin.Each(ctx, a.Client.CoreV1().ConfigMaps(ns).List, configs, func(cm *corev1.ConfigMap) {
		if serves(cm, class) {
			found = append(found, cut.Config(cm))
		}
	})
	if err != nil {
		return out, fmt.Errorf("list the provisioner configs in %s: %w", ns, err)
	}
	switch name := config.NameFor(class); {
	case name != "" && len(found) == 0:
		out.Fault = fmt.Errorf("it names the ConfigMap %s by its parameter %s, and the namespace %s has no provisioner config of that name", quote.Name(name), contract.ParamConfig, ns)
	case len(found) != 1:
		out.Fault = fmt.Errorf("%d ConfigMaps in the namespace %s are its provisioner config: let it be one", len(found), ns)
	case name != "" && !config.Lists(found[0], class.Name):
		out.Fault = fmt.Errorf("it names the ConfigMap %s/%s by its parameter %s, and the ConfigMap does not list it. Remedy: add the class to data.classes of the ConfigMap",
			ns, name, contract.ParamConfig)
	default:
		out.Config, out.UID, out.Fault = a.parse(ctx, found[0], class)
	}
	return out, nil
}

// serves reports whether a ConfigMap is the one that a class names, or is labelled for it.
func serves(cm *corev1.ConfigMap, class *storagev1.StorageClass) bool {
	name := config.NameFor(class)
	return cm.Name == name || name == "" && cm.Labels[contract.LabelStorageClass] == class.Name
}

// parse reads a config whose storage is to be listed, and judges it as the dispatcher does: an
// audit has an administrator's rights, and whoever may edit a config gets no more by them.
func (a *Auditor) parse(ctx context.Context, cm *corev1.ConfigMap, class *storagev1.StorageClass) (config.Config, string, error) {
	cfg, faults := config.Parse(config.SourceOf(cm, class), a.Dispatcher)
	switch {
	case len(faults) > 0:
		return cfg, "", fmt.Errorf("its config %s/%s: %w", cm.Namespace, cm.Name, faults.ToAggregate())
	case !cfg.Supports(contract.List):
		return cfg, "", fmt.Errorf("%w: its config %s/%s does not have list among its verbs: "+
			"add it if its image or script serves it (docs/contract.md#the-list)", errUnlisted, cm.Namespace, cm.Name)
	}
	if faults = jobs.Check(cfg, a.Allowed); len(faults) > 0 {
		return cfg, "", fmt.Errorf("its config %s/%s: %s. Remedy: correct the config or, if the dispatcher has an --allow for it, give the audit the same one",
			cm.Namespace, cm.Name, quote.Line(faults.ToAggregate().Error()))
	}
	return cfg, string(cm.UID), a.whyAccountRefused(ctx, cfg)
}

// whyAccountRefused returns why a config may not name its ServiceAccount, or nil.
func (a *Auditor) whyAccountRefused(ctx context.Context, cfg config.Config) error {
	if cfg.ServiceAccount == "" {
		return nil
	}
	ns, name := cfg.Source.Namespace, cfg.ServiceAccount
	account, err := a.Client.CoreV1().ServiceAccounts(ns).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get the ServiceAccount %s/%s: %w", ns, quote.Name(name), err)
	}
	if err != nil || account.Labels[contract.LabelProvisioner] != "true" {
		return fmt.Errorf("its config %s/%s names the ServiceAccount %s, which does not exist in that namespace or lacks the label %s=true",
			ns, cfg.Source.Name, quote.Name(name), contract.LabelProvisioner)
	}
	return nil
}
