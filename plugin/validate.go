package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// Validation is what is wrong with the provisioner ConfigMaps of some files.
type Validation struct {
	metav1.TypeMeta `json:",inline"`

	Configs []Validated `json:"configs"`
}

// Validated is what is wrong with one ConfigMap as the config of one class. With an error the
// dispatcher does not use it, with a warning it does.
type Validated struct {
	File     string   `json:"file"`
	Line     int      `json:"line"`   // at which its document begins
	Config   string   `json:"config"` // namespace/name
	Class    string   `json:"class"`
	Errors   []string `json:"errors,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func validateCommand() *cobra.Command {
	files, output := &Files{}, ""
	cmd := &cobra.Command{
		Use:   "validate -f FILE|DIRECTORY...",
		Short: "Check provisioner ConfigMaps in files, as the dispatcher does",
		Long: "validate reads ConfigMaps with the label type=provisioner-config, and the StorageClasses\n" +
			"and ServiceAccounts beside them, and prints every error and warning that the dispatcher\n" +
			"would find. It needs no cluster. It reads files and directories as kubectl apply does.\n" +
			"The dispatcher's flags are those of its Deployment, if that is in the files, or else of\n" +
			"the command. A ConfigMap that names no namespace is checked as one of --namespace.",
		Example: "  kubectl flex validate -f my-filer.yaml\n  kubectl flex validate -f my-filers/\n" +
			"  kubectl kustomize overlay | kubectl flex validate -f -",
		Args: noFileButByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := Validate(files)
			if err != nil {
				return err
			}
			printed, err := printObject(cmd.OutOrStdout(), output, v)
			if !printed {
				err = (&printer{out: cmd.OutOrStdout()}).validation(v)
			}
			if err == nil && slices.ContainsFunc(v.Configs, func(c Validated) bool { return len(c.Errors) > 0 }) {
				return ErrFound
			}
			return err
		},
	}
	files.addFlags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml; default: text for people")
	return cmd
}

// Validate judges the provisioner ConfigMaps of files.
func Validate(files *Files) (*Validation, error) {
	m, err := files.read()
	if err != nil {
		return nil, err
	}
	allowed, err := m.serving.Allowances()
	if err != nil {
		return nil, err
	}
	v := &Validation{TypeMeta: metav1.TypeMeta{APIVersion: Version, Kind: "Validation"}}
	for _, cm := range m.configs {
		for _, class := range m.classesOf(cm.ConfigMap) {
			v.Configs = append(v.Configs, m.judge(cm, class, allowed))
		}
	}
	return v, nil
}

// serves reports whether a ConfigMap is labelled for a class, or lists one that names it.
func serves(cm *corev1.ConfigMap, class *storagev1.StorageClass) bool {
	named := config.NameFor(class)
	if named == "" {
		return class.Name == cm.Labels[contract.LabelStorageClass]
	}
	return named == cm.Name && config.Lists(cm, class.Name)
}

// classesOf returns the classes that a ConfigMap serves: those of the files, or one with the name in
// the label that any config may serve.
func (m *manifests) classesOf(cm *corev1.ConfigMap) []*storagev1.StorageClass {
	var out []*storagev1.StorageClass
	for _, class := range m.classes {
		if serves(cm, class) {
			out = append(out, class)
		}
	}
	if len(out) == 0 {
		out = append(out, &storagev1.StorageClass{
			ObjectMeta:  metav1.ObjectMeta{Name: cm.Labels[contract.LabelStorageClass]},
			Provisioner: m.serving.Provisioner,
			Parameters:  map[string]string{contract.ParamConfigNamespace: cm.Namespace},

			VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
		})
	}
	return out
}

func (m *manifests) judge(
	cm configInFile, class *storagev1.StorageClass, allowed jobs.Allowances,
) Validated {
	out := Validated{
		File: cm.at.file, Line: cm.at.line, Config: cm.Namespace + "/" + cm.Name, Class: class.Name,
	}
	cfg, faults := config.Parse(config.SourceOf(cm.ConfigMap, class).Named(), m.serving.Dispatcher())
	if err := m.unserved(cm.Namespace); err != nil {
		out.Errors = append(out.Errors, err.Error())
	} else if len(faults) == 0 {
		faults = jobs.Check(cfg, allowed)
	}
	if len(cm.BinaryData) > 0 {
		out.Errors = append(out.Errors, fmt.Sprintf("the dispatcher reads no binaryData, where kubectl puts a file that is not UTF-8: %s. "+
			"Remedy: save the file as UTF-8", quote.Line(strings.Join(slices.Sorted(maps.Keys(cm.BinaryData)), ", "))))
	}
	for _, fault := range append(faults, config.NamespacesFaults(cm.ConfigMap)...) {
		out.Errors = append(out.Errors, quote.Line(fault.Error()))
	}
	out.Errors = append(out.Errors, faultsOfClass(class, cm, m.serving)...)
	out.Errors = append(out.Errors, m.faultsAround(cm, cfg.ServiceAccount)...)
	for _, warning := range cfg.Warnings {
		out.Warnings = append(out.Warnings, quote.Line(warning))
	}
	if cm.assumed {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the ConfigMap names no namespace, and is "+
			"checked as one of %[1]s. kubectl apply would create it in the namespace of its context. "+
			"Remedy: add metadata.namespace: %[1]s. Or give both commands --namespace=%[1]s",
			quote.Name(cm.Namespace)))
	}
	if class.Name == "" {
		out.Warnings = append(out.Warnings, fmt.Sprintf("no class uses the ConfigMap: it lacks the "+
			"label %s, and no StorageClass of the files names it by the parameter %s. "+
			"Remedy: add the label, with the name of the class",
			contract.LabelStorageClass, contract.ParamConfig))
	}
	return out
}

// faultsAround returns what is wrong with the other objects of the files that a config needs, or
// that contradict it.
func (m *manifests) faultsAround(cm configInFile, account string) []string {
	var out []string
	a := m.account(cm.Namespace, account)
	if a != nil && a.Labels[contract.LabelProvisioner] != "true" {
		out = append(out, fmt.Sprintf("the ServiceAccount %s lacks the label %[2]s=true. "+
			"Remedy: add %[2]s: \"true\" under its metadata.labels",
			quote.Name(a.Name), contract.LabelProvisioner))
	}
	label := cm.Labels[contract.LabelStorageClass]
	for _, other := range m.configs {
		same := other.Labels[contract.LabelStorageClass] == label && other.Namespace == cm.Namespace
		if label != "" && same && other.Name != cm.Name {
			out = append(out, fmt.Sprintf("the ConfigMap %s (%s) is labelled for the class %s, too, "+
				"and the dispatcher uses neither. Remedy: remove the label %s from one",
				quote.Name(other.Name), other.at, quote.Name(label), contract.LabelStorageClass))
		}
	}
	return out
}

// faultsOfClass returns why a config in a namespace is not the one of the class.
func faultsOfClass(
	class *storagev1.StorageClass, cm configInFile, serving options.Serving,
) []string {
	var out []string
	if ns := config.NamespaceFor(class, serving.Namespace); ns != cm.Namespace {
		remedy := "create the class with the parameter " + contract.ParamConfigNamespace + "=" +
			quote.Name(cm.Namespace)
		if cm.assumed {
			remedy = "add metadata.namespace: " + quote.Name(ns) + " to the ConfigMap"
		}
		out = append(out, fmt.Sprintf("the class %s has its config in the namespace %s. Remedy: %s",
			quote.Name(class.Name), quote.Name(ns), remedy))
	}
	if class.Provisioner != serving.Provisioner {
		out = append(out, fmt.Sprintf("the class %s has the provisioner %s, and not %s. "+
			"Remedy: create the class with provisioner: %[3]s",
			quote.Name(class.Name), quote.Name(class.Provisioner), quote.Name(serving.Provisioner)))
	}
	return out
}

// unserved returns why the dispatcher reads no config of a namespace, or nil if it does.
func (m *manifests) unserved(namespace string) error {
	if slices.Contains(m.serving.Namespaces(), namespace) {
		return nil
	}
	served := quote.Line(strings.Join(m.serving.Namespaces(), ", "))
	if m.dispatcher != nil {
		return fmt.Errorf("the dispatcher of the files reads no config of the namespace %s, only those "+
			"of %s. Remedy: add --config-namespaces=%s to its Deployment, and what "+
			"docs/configuration.md#namespaces-of-configs lists, or move the ConfigMap",
			quote.Name(namespace), served, quote.Name(namespace))
	}
	return fmt.Errorf("a dispatcher with these flags reads no config of the namespace %s, only "+
		"those of %s. Remedy: add its Deployment to the files, by kubectl kustomize "+
		"deploy/node-directories for the namespace flex-provisioner-node, or its flags "+
		"--config-namespaces and --allow to the command",
		quote.Name(namespace), served)
}

// account returns a ServiceAccount of the files, or nil.
func (m *manifests) account(namespace, name string) *corev1.ServiceAccount {
	i := slices.IndexFunc(m.accounts, func(a *corev1.ServiceAccount) bool { return a.Namespace == namespace && a.Name == name })
	if i < 0 {
		return nil
	}
	return m.accounts[i]
}

func (p *printer) validation(v *Validation) error {
	faults, warnings := 0, 0
	for _, c := range v.Configs {
		at := place{c.File, c.Line}
		p.printf("%s: ConfigMap %s, class %s\n", at, quote.Name(c.Config), quote.Name(c.Class))
		for _, text := range c.Errors {
			p.printf("  error    %s\n", quote.Indent(text, 11))
		}
		for _, text := range c.Warnings {
			p.printf("  warning  %s\n", quote.Indent(text, 11))
		}
		faults, warnings = faults+len(c.Errors), warnings+len(c.Warnings)
	}
	p.printf("%d errors, %d warnings\n", faults, warnings)
	return p.err
}
