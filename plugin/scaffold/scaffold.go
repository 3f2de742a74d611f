// Package scaffold renders the folder that kubectl flex new writes: a provisioner that works, for
// its owner to change. Its script and its manifests are those of recipes, which the project's tests
// run, with other names. Start reading at Files.
package scaffold

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/configmaps"
	"github.com/flex-provisioner/flex-provisioner/deploy"
	"github.com/flex-provisioner/flex-provisioner/scripts"
)

// Kind is where the storage of a provisioner is.
type Kind string

// Kinds of provisioners.
const (
	Network Kind = "network" // pods on any node reach it
	Node    Kind = "node"    // a directory of the node that the scheduler selects
)

// recipe is what a folder is made of.
type recipe struct {
	script    string
	documents []documents
	// names are those of the recipe, each with the one in its place. There NAME is the provisioner's,
	// and TEXT is it as a value of YAML. Where script and ConfigMap are of two recipes, a key that the
	// script needs is added in the same way.
	names []string
}

// documents are the first ones of a file, all of them if first is 0.
type documents struct {
	in    fs.FS
	file  string
	first int
}

var recipes = map[Kind]recipe{
	Network: {
		script:    "isolated-provisioner.sh",
		documents: []documents{{deploy.Files, "examples/nfs.yaml", 0}, {configmaps.Files, "nfs.yaml", 0}},
		names: []string{
			"nfs-provisioner", "NAME-provisioner", "nfs-export", "NAME-export", ": nfs\n", ": TEXT\n",
			"\n  nfs-server: ", "\n  base-dir: /export\n  nfs-server: ",
		},
	},
	Node: {
		script: "directory-provisioner.sh",
		documents: []documents{
			{deploy.Files, "examples/node-directory.yaml", 0},
			{deploy.Files, "node-directories/rbac.yaml", 2}, // the ServiceAccount and its permission
			{configmaps.Files, "node-directory.yaml", 0},
		},
		names: []string{"directory-provisioner", "NAME-provisioner", ": node-directory\n", ": TEXT\n"},
	},
}

//go:embed *.tmpl
var templates embed.FS

// about is what the templates know of a folder.
type about struct {
	Name  string
	Value string // Name as a value of YAML
	Node  bool
	Flags []string // those of the dispatcher that the ConfigMap needs
}

// Files returns the files of the folder of a provisioner, by their names.
func Files(name string, kind Kind) (map[string]string, error) {
	r := recipes[kind]
	manifests, err := r.manifests(name)
	if err != nil {
		return nil, err
	}
	script, err := read(scripts.Files, r.script)
	if err != nil {
		return nil, err
	}
	script = "#!/bin/bash\n# The provisioner of the class " + name + ".\n" + withoutHeader(script)
	out := map[string]string{
		name + ".yaml": "# The class " + name + ", and what serves it. README.md says what to change.\n" + withScript(manifests, script),
	}
	of := about{Name: name, Value: value(name), Node: kind == Node}
	if of.Node {
		if of.Flags, err = dispatcherFlags(); err != nil {
			return nil, err
		}
	}
	for _, file := range []string{"README.md", "provoke.yaml"} {
		if out[file], err = render(file, of); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func render(file string, of about) (string, error) {
	t, err := template.ParseFS(templates, file+".tmpl")
	if err != nil {
		return "", fmt.Errorf("read a template: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, of); err != nil {
		return "", fmt.Errorf("write %s: %w", file, err)
	}
	return out.String(), nil
}

const separator = "---\n"

// manifests returns the recipe's manifests, with the provisioner's names.
func (r recipe) manifests(name string) (string, error) {
	var all []string
	for _, d := range r.documents {
		text, err := read(d.in, d.file)
		if err != nil {
			return "", err
		}
		parts := strings.Split(withoutHeader(text), "\n"+separator)
		if d.first > 0 {
			parts = parts[:d.first]
		}
		all = append(all, strings.TrimSuffix(strings.Join(parts, "\n"+separator), "\n"))
	}
	text := strings.NewReplacer(r.names...).Replace(strings.Join(all, "\n"+separator) + "\n")
	return strings.NewReplacer("NAME", name, "TEXT", value(name)).Replace(text), nil
}

// ofImage is the line of a recipe's ConfigMap that names its image, and dataOf the one at which its
// data begin.
var ofImage, dataOf = regexp.MustCompile(`(?m)^  image: .*\n`), regexp.MustCompile(`(?m)^data:$`)

// withScript puts a script into the ConfigMap at the end of manifests, in place of its image. Flux
// would replace each ${VARIABLE} in it, unless an annotation says otherwise.
func withScript(manifests, script string) string {
	manifests = ofImage.ReplaceAllLiteralString(manifests, "")
	manifests = dataOf.ReplaceAllLiteralString(manifests, "  annotations:\n    kustomize.toolkit.fluxcd.io/substitute: disabled\ndata:")
	lines := strings.Split(strings.TrimSuffix(script, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "    " + line
		}
	}
	return manifests + "  script: |\n" + strings.Join(lines, "\n") + "\n"
}

// value returns a name as a value of YAML: 123 and no are names, too.
func value(name string) string {
	text, err := yaml.Marshal(name)
	if err != nil {
		panic(err) // a string: cannot fail
	}
	return strings.TrimSpace(string(text))
}

func read(in fs.FS, file string) (string, error) {
	text, err := fs.ReadFile(in, file)
	if err != nil {
		return "", fmt.Errorf("read a recipe: %w", err)
	}
	return string(text), nil
}

// withoutHeader returns a file without the comments at its beginning, which are about the recipe.
func withoutHeader(text string) string {
	for strings.HasPrefix(text, "#") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

var flags = regexp.MustCompile(`--(allow|config-namespaces)=[^}\s]+`)

// dispatcherFlags returns the flags of a dispatcher that serves directories of nodes.
func dispatcherFlags() ([]string, error) {
	text, err := read(deploy.Files, "node-directories/kustomization.yaml")
	return flags.FindAllString(text, -1), err
}
