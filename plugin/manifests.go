package plugin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
	// others are the ConfigMaps without the label of a config.
	others []string
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

func (p place) String() string { return p.file + ":" + strconv.Itoa(p.line) }

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
}

// noConfig is the error of files without a provisioner ConfigMap.
func (m *manifests) noConfig() error {
	const label = contract.LabelType + ": " + contract.TypeConfig
	if len(m.others) > 0 {
		return fmt.Errorf("no ConfigMap of the files has the label %s: %s. "+
			"Remedy: add it under metadata.labels", label, strings.Join(m.others, ", "))
	}
	return fmt.Errorf("the files have no ConfigMap with the label %s. "+
		"Remedy: name its file by --filename, too", label)
}

// extensions are those of the files that kubectl reads of a directory (FileExtensions of
// k8s.io/cli-runtime/pkg/resource).
var extensions = []string{".json", ".yaml", ".yml"}

// readNamed reads what a name stands for, as the resource.Builder of kubectl does: the standard
// input, a file, the files of a directory without those below it, or those that match a pattern.
func (m *manifests) readNamed(name string, stdin io.Reader) error {
	if name == "-" {
		return m.readFrom("-", stdin)
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return fmt.Errorf("%s is no file. "+
			"Remedy: curl --fail --location %s, piped into this command with --filename=-",
			quote.Name(name), quote.Name(name))
	}
	names := []string{name}
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		matches, err := filepath.Glob(name)
		if err != nil || len(matches) == 0 {
			return fmt.Errorf("the file %s does not exist. "+
				"Remedy: correct its path, or change the directory", quote.Name(name))
		}
		names = matches
	}
	var faults []error
	for _, name := range names {
		faults = append(faults, m.readPath(name))
	}
	return errors.Join(faults...)
}

func (m *manifests) readPath(name string) error {
	entries, err := os.ReadDir(name)
	if err != nil { // no directory
		return m.readFile(name)
	}
	var files []string
	for _, entry := range entries {
		file := filepath.Join(name, entry.Name())
		if isKustomization(file) {
			return m.readFile(file)
		}
		if !entry.IsDir() && slices.Contains(extensions, filepath.Ext(file)) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return fmt.Errorf("the directory %s has no file with one of the extensions %s, and "+
			"those below it are not read. Remedy: name the directory of the files",
			quote.Name(name), strings.Join(extensions, ", "))
	}
	var faults []error
	for _, file := range files {
		faults = append(faults, m.readFile(file))
	}
	return errors.Join(faults...)
}

func isKustomization(file string) bool {
	base := filepath.Base(file)
	return base == "kustomization.yaml" || base == "kustomization.yml" || base == "Kustomization"
}

func (m *manifests) readFile(name string) error {
	if isKustomization(name) {
		return fmt.Errorf("%s is a kustomization. "+
			"Remedy: kubectl kustomize %s, piped into this command with --filename=-",
			quote.Name(name), quote.Name(filepath.Dir(name)))
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it is only read
	return m.readFrom(name, file)
}

func (m *manifests) readFrom(name string, in io.Reader) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", quote.Name(name), err)
	}
	var faults []error
	for _, d := range documentsOf(string(text)) {
		if err := m.readDocument(place{name, d.begins()}, d.text); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", place{name, d.begins()}, d.inFile(err)))
		}
	}
	return errors.Join(faults...)
}

// document is a part of a file, with the number of lines before it.
type document struct {
	text   string
	before int
}

// documentsOf splits a text before each line that separates documents of YAML.
func documentsOf(text string) []document {
	out, number := []document{{}}, 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "---") {
			out = append(out, document{before: number})
		}
		out[len(out)-1].text += line
		number++
	}
	return out
}

// begins is the number of the first line that is no separator, comment or blank.
func (d document) begins() int {
	number := d.before + 1
	for line := range strings.Lines(d.text) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "---"))
		if line != "" && line[0] != '#' {
			break
		}
		number++
	}
	return number
}

var lineOfError = regexp.MustCompile(`\bline (\d+)`)

// inFile returns an error of a document with the lines of its file.
func (d document) inFile(err error) error {
	return errors.New(lineOfError.ReplaceAllStringFunc(err.Error(), func(text string) string {
		number, _ := strconv.Atoi(lineOfError.FindStringSubmatch(text)[1]) // it matches
		return "line " + strconv.Itoa(d.before+number)
	}))
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
		if err := m.decode(at, raw.Raw); err != nil {
			return err
		}
	}
}

// strict refuses what the API server refuses for kubectl: a field that no object of the kind has.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).
	UniversalDeserializer()

// decode adds an object, or those of a list.
func (m *manifests) decode(at place, raw []byte) error {
	obj, kind, err := strict.Decode(raw, nil, nil)
	switch {
	case runtime.IsNotRegisteredError(err) && kind.Group == corev1.GroupName:
		return fmt.Errorf("there is no kind %s of apiVersion %s. "+
			"Remedy: correct them, as kind: ConfigMap and apiVersion: v1",
			quote.Name(kind.Kind), quote.Name(kind.Version))
	case runtime.IsNotRegisteredError(err):
		return nil // of another project
	case runtime.IsMissingKind(err), runtime.IsMissingVersion(err):
		return errors.New("it has no kind, or no apiVersion. " +
			"Remedy: begin a ConfigMap with apiVersion: v1 and kind: ConfigMap")
	case runtime.IsStrictDecodingError(err) && isJudged(obj):
		return fmt.Errorf("%w. Remedy: correct the name of the field, or its place", err)
	case err != nil && !runtime.IsStrictDecodingError(err):
		return cmp.Or(noTexts(raw), err)
	}
	if !meta.IsListType(obj) {
		m.add(obj, at)
		return nil
	}
	items, err := meta.ExtractList(obj)
	if err != nil {
		return err
	}
	for i, item := range items {
		if unread, is := item.(*runtime.Unknown); is {
			err = m.decode(at, unread.Raw)
		} else {
			m.add(item, at)
		}
		if err != nil {
			return fmt.Errorf("item %d of the list: %w", i+1, err)
		}
	}
	return nil
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
	if err := json.Unmarshal(raw, &cm); err != nil || cm.Kind != "ConfigMap" {
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
			m.others = append(m.others, at.String()+" "+quote.Name(o.Name))
		}
	case *storagev1.StorageClass:
		m.classes = append(m.classes, o)
	case *corev1.PersistentVolumeClaim:
		if o.Spec.StorageClassName != nil && *o.Spec.StorageClassName == "" {
			return // it takes a volume that exists, as that of a recipe's export
		}
		m.claims = slices.DeleteFunc(m.claims, func(earlier claimInFile) bool { // as kubectl apply
			return earlier.Namespace == o.Namespace && earlier.Name == o.Name
		})
		m.claims = append(m.claims, claimInFile{o, at})
	case *corev1.ServiceAccount:
		m.accounts = append(m.accounts, o)
	case *appsv1.Deployment:
		if o.Name == options.Name {
			m.dispatcher = o
		}
	}
}
