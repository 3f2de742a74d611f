package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

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
	Config   string   `json:"config"` // namespace/name
	Class    string   `json:"class"`
	Errors   []string `json:"errors,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

func validateCommand() *cobra.Command {
	serving, files, output := options.Serving{}, []string{}, ""
	cmd := &cobra.Command{
		Use:   "validate -f FILE...",
		Short: "Check provisioner ConfigMaps in files, as the dispatcher does",
		Long: "validate reads ConfigMaps with the label type=provisioner-config, and the StorageClasses and ServiceAccounts beside them, and prints every error and warning that the\n" +
			"dispatcher would find. It needs no cluster. The dispatcher's flags are those of its Deployment, if that is in the files, or of the command.",
		Example: "  kubectl flex validate -f my-filer.yaml\n  kubectl kustomize overlay | kubectl flex validate -f -",
		Args:    noFileButByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := Validate(files, cmd.InOrStdin(), serving)
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
	addFiles(cmd, &files)
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml; default: text for people")
	serving.AddFlags(cmd.Flags())
	return cmd
}

// addFiles adds the flag that names files with manifests.
func addFiles(cmd *cobra.Command, files *[]string) {
	cmd.Flags().StringArrayVarP(files, "filename", "f", nil, "file with manifests, or - for the standard input; may be repeated")
	_ = cmd.MarkFlagRequired("filename") // it exists
}

// noFileButByFlag returns an error for an argument: most people mean a file.
func noFileButByFlag(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s is no flag: a file is named by --filename", quote.Name(args[0]))
	}
	return nil
}

// manifests are the objects of files that a config is judged by.
type manifests struct {
	configs  []configInFile
	classes  []*storagev1.StorageClass
	accounts []*corev1.ServiceAccount
	claim    *corev1.PersistentVolumeClaim // the last of the files, or nil
	// dispatcher is its Deployment, nil if the files have none.
	dispatcher *appsv1.Deployment
}

type configInFile struct {
	*corev1.ConfigMap

	file string
}

// errNoConfig is the error of files without a provisioner ConfigMap.
var errNoConfig = fmt.Errorf("no ConfigMap with the label %s=%s is in the files", contract.LabelType, contract.TypeConfig)

// Validate judges the provisioner ConfigMaps of files, or of the standard input.
func Validate(files []string, stdin io.Reader, serving options.Serving) (*Validation, error) {
	m, serving, err := readManifests(files, stdin, serving)
	if err != nil {
		return nil, err
	}
	allowed, err := serving.Allowances()
	if err != nil {
		return nil, err
	}
	v := &Validation{TypeMeta: metav1.TypeMeta{APIVersion: Version, Kind: "Validation"}}
	for _, cm := range m.configs {
		for _, class := range m.classesOf(cm.ConfigMap, serving.Provisioner) {
			v.Configs = append(v.Configs, m.judge(cm, class, serving, allowed))
		}
	}
	return v, nil
}

// readManifests reads files, or the standard input. The dispatcher's flags are those of its
// Deployment, if the files have it.
func readManifests(files []string, stdin io.Reader, serving options.Serving) (m manifests, _ options.Serving, err error) {
	for _, file := range files {
		if err := m.read(file, stdin); err != nil {
			return m, serving, fmt.Errorf("%s: %w", file, err)
		}
	}
	if len(m.configs) == 0 {
		return m, serving, errNoConfig
	}
	if m.dispatcher != nil {
		serving, err = options.Of(m.dispatcher)
	} else {
		serving.ScriptImage = cmp.Or(serving.ScriptImage, options.ShellImage)
	}
	return m, serving, err
}

func (m *manifests) read(name string, stdin io.Reader) error {
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it is only read
		in = file
	}
	documents := utilyaml.NewYAMLOrJSONDecoder(in, 4<<10)
	for {
		var raw runtime.RawExtension
		switch err := documents.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(raw.Raw) == 0:
			continue
		}
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw.Raw, nil, nil)
		if runtime.IsNotRegisteredError(err) {
			continue // of another project
		}
		if err != nil {
			return err
		}
		m.add(obj, name)
	}
}

func (m *manifests) add(obj runtime.Object, file string) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		if o.Labels[contract.LabelType] == contract.TypeConfig {
			m.configs = append(m.configs, configInFile{o, file})
		}
	case *storagev1.StorageClass:
		m.classes = append(m.classes, o)
	case *corev1.PersistentVolumeClaim:
		m.claim = o
	case *corev1.ServiceAccount:
		m.accounts = append(m.accounts, o)
	case *appsv1.Deployment:
		if o.Name == options.Name {
			m.dispatcher = o
		}
	}
}

// classesOf returns the classes that a ConfigMap serves: those of the files, or one with the name in
// the label that any config may serve.
func (m *manifests) classesOf(cm *corev1.ConfigMap, provisioner string) []*storagev1.StorageClass {
	label := cm.Labels[contract.LabelStorageClass]
	var out []*storagev1.StorageClass
	for _, class := range m.classes {
		named := config.NameFor(class)
		if named == "" && class.Name == label || named == cm.Name && config.Lists(cm, class.Name) {
			out = append(out, class)
		}
	}
	if len(out) == 0 {
		out = append(out, &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: label}, Provisioner: provisioner, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
			Parameters: map[string]string{contract.ParamConfigNamespace: cm.Namespace},
		})
	}
	return out
}

func (m *manifests) judge(cm configInFile, class *storagev1.StorageClass, serving options.Serving, allowed jobs.Allowances) Validated {
	out := Validated{File: cm.file, Config: cm.Namespace + "/" + cm.Name, Class: class.Name}
	cfg, faults := config.Parse(config.SourceOf(cm.ConfigMap, class).Named(), serving.Dispatcher())
	if err := m.unserved(cm.ConfigMap, serving); err != nil {
		out.Errors = append(out.Errors, err.Error())
	} else if len(faults) == 0 {
		faults = jobs.Check(cfg, allowed)
	}
	if len(cm.BinaryData) > 0 {
		out.Errors = append(out.Errors, fmt.Sprintf("the dispatcher reads no binaryData, where kubectl puts a file that is not UTF-8: %s. "+
			"Remedy: save the file as UTF-8", quote.Line(strings.Join(slices.Sorted(maps.Keys(cm.BinaryData)), ", "))))
	}
	for _, fault := range faults {
		out.Errors = append(out.Errors, quote.Line(fault.Error()))
	}
	out.Errors = append(out.Errors, faultsOfClass(class, cm.Namespace, serving)...)
	if account := m.account(cm.Namespace, cfg.ServiceAccount); account != nil && account.Labels[contract.LabelProvisioner] != "true" {
		out.Errors = append(out.Errors, fmt.Sprintf("the ServiceAccount %s lacks the label %s=true", quote.Name(account.Name), contract.LabelProvisioner))
	}
	for _, warning := range cfg.Warnings {
		out.Warnings = append(out.Warnings, quote.Line(warning))
	}
	if class.Name == "" {
		out.Warnings = append(out.Warnings, fmt.Sprintf("no class uses the ConfigMap: it lacks the label %s, and no StorageClass of the files names it by the parameter %s",
			contract.LabelStorageClass, contract.ParamConfig))
	}
	return out
}

// faultsOfClass returns why a config in a namespace is not the one of the class.
func faultsOfClass(class *storagev1.StorageClass, namespace string, serving options.Serving) []string {
	var out []string
	if ns := config.NamespaceFor(class, serving.Namespace); ns != namespace && namespace != "" {
		out = append(out, fmt.Sprintf("the class %s has its config in the namespace %s. "+
			"Remedy: create the class with the parameter %s=%s",
			quote.Name(class.Name), quote.Name(ns), contract.ParamConfigNamespace, quote.Name(namespace)))
	}
	if class.Provisioner != serving.Provisioner {
		out = append(out, fmt.Sprintf("the class %s has the provisioner %s, and not %s",
			quote.Name(class.Name), quote.Name(class.Provisioner), serving.Provisioner))
	}
	return out
}

// unserved returns why the dispatcher reads no config of a ConfigMap's namespace, or nil if it does.
func (m *manifests) unserved(cm *corev1.ConfigMap, serving options.Serving) error {
	if slices.Contains(serving.Namespaces(), cm.Namespace) {
		return nil
	}
	served := quote.Line(strings.Join(serving.Namespaces(), ", "))
	switch {
	case cm.Namespace == "":
		return fmt.Errorf("the ConfigMap %s names no namespace, and kubectl would create it in that of its context. "+
			"Remedy: add metadata.namespace: %s", quote.Name(cm.Name), quote.Name(serving.Namespace))
	case m.dispatcher != nil:
		return fmt.Errorf("the dispatcher of the files reads no config of the namespace %s, only those of %s. Remedy: add --config-namespaces=%s to its "+
			"Deployment, and what docs/configuration.md#namespaces-of-configs lists, or move the ConfigMap",
			quote.Name(cm.Namespace), served, quote.Name(cm.Namespace))
	default:
		return fmt.Errorf("a dispatcher with these flags reads no config of the namespace %s, only those of %s. Remedy: add its Deployment to the files, "+
			"by kubectl kustomize deploy/node-directories for the namespace flex-provisioner-node, or its flags --config-namespaces and --allow to the command",
			quote.Name(cm.Namespace), served)
	}
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
		p.printf("%s: ConfigMap %s, class %s\n", c.File, quote.Name(c.Config), quote.Name(c.Class))
		for _, text := range c.Errors {
			p.printf("  error    %s\n", text)
		}
		for _, text := range c.Warnings {
			p.printf("  warning  %s\n", text)
		}
		faults, warnings = faults+len(c.Errors), warnings+len(c.Warnings)
	}
	p.printf("%d errors, %d warnings\n", faults, warnings)
	return p.err
}
