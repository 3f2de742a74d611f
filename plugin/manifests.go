package plugin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// Files are what a command reads in place of a cluster.
type Files struct {
	// Names are those of files and directories, - is Stdin.
	Names []string
	Stdin io.Reader
	// Serving are the flags of the dispatcher, unless its Deployment is in the files.
	Serving options.Serving

	given []string // the flags of Serving that the command line has
}

// addFlags adds the flag that names the files, and those of the dispatcher.
func (f *Files) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&f.Names, "filename", "f", nil,
		"file or directory with manifests, or - for the standard input; may be repeated")
	_ = cmd.MarkFlagRequired("filename") // it exists
	f.addServing(cmd)
}

// addServing adds the flags of the dispatcher.
func (f *Files) addServing(cmd *cobra.Command) {
	serving := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Serving.AddFlags(serving)
	serving.Lookup(flagNamespace).Shorthand = "n"
	serving.Lookup(flagNamespace).Usage += ", and of manifests that name none"
	cmd.Flags().AddFlagSet(serving)
	cmd.PreRun = func(cmd *cobra.Command, _ []string) {
		f.Stdin = cmd.InOrStdin()
		serving.VisitAll(func(one *pflag.Flag) {
			if one.Changed {
				f.given = append(f.given, one.Name)
			}
		})
	}
}

const flagNamespace = "namespace"

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
	claims   []claimInFile
	// others are the ConfigMaps without the label of a config, unlabelled where they are.
	others     []*corev1.ConfigMap
	unlabelled []string
	secrets    []*corev1.Secret
	// dispatcher is its Deployment, nil if the files have none, and serving are its flags.
	dispatcher *appsv1.Deployment
	serving    options.Serving
}

type configInFile struct {
	*corev1.ConfigMap

	at      place
	assumed bool // its namespace
}

type claimInFile struct {
	*corev1.PersistentVolumeClaim

	at place
}

// place is where a manifest begins.
type place struct {
	file string
	line int
}

// String quotes the name of the file: that of a merge request may have any character.
func (p place) String() string { return quote.Name(p.file) + ":" + strconv.Itoa(p.line) }

// read reads the files as kubectl apply does. It returns an error for each document that it cannot
// read.
func (f *Files) read() (*manifests, error) {
	m := &manifests{}
	var faults []error
	for _, name := range f.Names {
		faults = append(faults, m.readNamed(name, f.Stdin))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if len(m.configs) == 0 {
		return nil, m.noConfig()
	}
	if err := m.setServing(f); err != nil {
		return nil, err
	}
	m.setNamespaces(f)
	return m, nil
}

// setServing finds the flags of the dispatcher.
func (m *manifests) setServing(f *Files) (err error) {
	m.serving = f.Serving
	if m.dispatcher == nil {
		m.serving.ScriptImage = cmp.Or(m.serving.ScriptImage, options.ShellImage)
		return nil
	}
	for _, flag := range f.given {
		if flag != flagNamespace {
			return fmt.Errorf("the files have the Deployment %s, and its flags are used. "+
				"Remedy: leave out --%s, or add it to the Deployment", options.Name, flag)
		}
	}
	m.serving, err = options.Of(m.dispatcher)
	return err
}

// setNamespaces sets the namespace of configs and accounts that name none. A claim may be in any.
func (m *manifests) setNamespaces(f *Files) {
	namespace, given := m.serving.Namespace, slices.Contains(f.given, flagNamespace)
	if given {
		namespace = f.Serving.Namespace
	}
	for i := range m.configs {
		if cm := &m.configs[i]; cm.Namespace == "" {
			cm.Namespace, cm.assumed = namespace, !given
		}
	}
	for _, account := range m.accounts {
		account.Namespace = cmp.Or(account.Namespace, namespace)
	}
	for _, cm := range m.others {
		cm.Namespace = cmp.Or(cm.Namespace, namespace)
	}
	for _, secret := range m.secrets {
		secret.Namespace = cmp.Or(secret.Namespace, namespace)
		withStringData(secret)
	}
}

// withStringData gives a Secret the data that it has as text, as the API server does.
func withStringData(secret *corev1.Secret) {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

// noConfig is the error of files without a provisioner ConfigMap.
func (m *manifests) noConfig() error {
	const label = contract.LabelType + ": " + contract.TypeConfig
	if len(m.unlabelled) > 0 {
		return fmt.Errorf("no ConfigMap of the files has the label %s: %s. "+
			"Remedy: add it under metadata.labels", label, strings.Join(m.unlabelled, ", "))
	}
	return fmt.Errorf("the files have no ConfigMap with the label %s. "+
		"Remedy: name its file by --filename, too", label)
}

func (m *manifests) readDocument(at place, text string) error {
	objects := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4<<10)
	for {
		var raw runtime.RawExtension
		switch err := objects.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(raw.Raw) == 0:
			continue
		}
		if err := m.decode(at, raw.Raw, maxNested); err != nil {
			return err
		}
	}
}

// strict refuses what the API server refuses for kubectl: a field that no object of the kind has.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).
	UniversalDeserializer()

// maxNested is how many lists may be within one another: each is decoded with all that it holds.
const maxNested = 10

// decode adds an object, or those of a list, with so many lists within one another. An object of
// another project is none of ours.
func (m *manifests) decode(at place, raw []byte, lists int) error {
	obj, kind, err := strict.Decode(raw, nil, nil)
	if runtime.IsNotRegisteredError(err) && kind.Group != corev1.GroupName {
		return nil
	}
	if err := unread(obj, kind, raw, err); err != nil {
		return err
	}
	if !meta.IsListType(obj) {
		m.add(obj, at)
		return nil
	}
	if lists == 0 {
		return fmt.Errorf("more than %d lists are within one another. "+
			"Remedy: write their objects as documents of YAML", maxNested)
	}
	items, err := meta.ExtractList(obj)
	if err != nil {
		return err
	}
	for i, item := range items {
		if text, ok := item.(*runtime.Unknown); !ok {
			m.add(item, at)
		} else if err := m.decode(at, text.Raw, lists-1); err != nil {
			return fmt.Errorf("item %d of the list: %w", i+1, err)
		}
	}
	return nil
}

// unread returns why an object that was decoded so cannot be judged, or nil. Fields that are
// unknown here may be those of a newer Kubernetes where the object is none that is judged.
func unread(obj runtime.Object, kind *schema.GroupVersionKind, raw []byte, err error) error {
	switch {
	case runtime.IsNotRegisteredError(err):
		return fmt.Errorf("there is no kind %s of apiVersion %s. "+
			"Remedy: correct them, as kind: ConfigMap and apiVersion: v1",
			quote.Name(kind.Kind), quote.Name(kind.Version))
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err):
		return errors.New("it has no kind, or no apiVersion. " +
			"Remedy: begin a ConfigMap with apiVersion: v1 and kind: ConfigMap")
	case err != nil && !runtime.IsStrictDecodingError(err):
		return cmp.Or(noTexts(raw), err)
	case err != nil && isJudged(obj):
		return fmt.Errorf("%w. Remedy: correct the name of the field, or its place", err)
	default:
		return nil
	}
}

// isJudged reports whether an object is one that validate judges. The others may be of a newer
// Kubernetes.
func isJudged(obj runtime.Object) bool {
	switch obj.(type) {
	case *corev1.ConfigMap, *corev1.ConfigMapList, *corev1.ServiceAccount, *storagev1.StorageClass:
		return true
	default:
		return false
	}
}

// noTexts returns which data of a ConfigMap YAML has taken for numbers or others, and how they are
// written as texts, or nil if all are.
func noTexts(raw []byte) error {
	var cm struct {
		Kind string                     `json:"kind"`
		Data map[string]json.RawMessage `json:"data"`
	}
	_ = json.Unmarshal(raw, &cm) // what is no map has no data, and is reported as it is
	if cm.Kind != "ConfigMap" {
		return nil
	}
	var remedies []string
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		switch value := string(cm.Data[key]); value[0] {
		case '"', 'n': // null is an empty text
		case '{', '[':
			remedies = append(remedies, key+": | and the text below it")
		default:
			remedies = append(remedies, key+": "+strconv.Quote(value))
		}
	}
	if len(remedies) == 0 {
		return nil
	}
	return fmt.Errorf("data has values that are no texts. Remedy: write %s",
		strings.Join(remedies, ", "))
}

func (m *manifests) add(obj runtime.Object, at place) {
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		if o.Labels[contract.LabelType] == contract.TypeConfig {
			m.configs = append(m.configs, configInFile{ConfigMap: o, at: at})
		} else {
			m.others = append(m.others, o)
			m.unlabelled = append(m.unlabelled, at.String()+" "+quote.Name(o.Name))
		}
	case *storagev1.StorageClass:
		m.classes = append(m.classes, o)
	case *corev1.PersistentVolumeClaim:
		m.addClaim(claimInFile{o, at})
	case *corev1.ServiceAccount:
		m.accounts = append(m.accounts, o)
	case *corev1.Secret:
		m.secrets = append(m.secrets, o)
	case *appsv1.Deployment:
		if o.Name == options.Name {
			m.dispatcher = o
		}
	}
}

// addClaim adds a claim in place of an earlier one of its name, as kubectl apply does. One without
// a class takes a volume that exists, as that of a recipe's export.
func (m *manifests) addClaim(claim claimInFile) {
	if class := claim.Spec.StorageClassName; class != nil && *class == "" {
		return
	}
	m.claims = slices.DeleteFunc(m.claims, func(earlier claimInFile) bool {
		return earlier.Namespace == claim.Namespace && earlier.Name == claim.Name
	})
	m.claims = append(m.claims, claim)
}
