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
	script    string // the file of configmaps whose script is taken
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
		script:    "isolated.yaml",
		documents: []documents{{configmaps.Files, "nfs.yaml", 0}},
		names: []string{
			"nfs-provisioner", "NAME-provisioner", "nfs-export", "NAME-export", ": nfs\n", ": TEXT\n",
			"flex-nfs-batch", "flex-NAME-batch", "[nfs]", "[TEXT]",
			"\n  nfs-server: ", "\n  base-dir: /export\n  nfs-server: ",
		},
	},
	Node: {
		script: "node-directory.yaml",
		documents: []documents{
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
	script, err := r.text()
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
	for _, file := range []string{"README.md", "provoke.txt"} {
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

// beforeScript is the line of a ConfigMap after which its script stands, to the end of the file.
const beforeScript = "\n  script: |\n"

// text returns the recipe's script.
func (r recipe) text() (string, error) {
	file, err := read(configmaps.Files, r.script)
	if err != nil {
		return "", err
	}
	_, block, _ := strings.Cut(file, beforeScript)
	return strings.ReplaceAll("\n"+block, "\n    ", "\n")[1:], nil
}

// withScript puts a script in place of the one at the end of manifests.
func withScript(manifests, script string) string {
	manifests, _, _ = strings.Cut(manifests, beforeScript)
	lines := strings.Split(strings.TrimSuffix(script, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "    " + line
		}
	}
	return manifests + beforeScript + strings.Join(lines, "\n") + "\n"
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

// nameOf is the name of an object, without the ending of an account, and kindOf the kinds of which
// a provisioner has one of its own.
var (
	nameOf = regexp.MustCompile(`(?m)^  name: (\S+?)(-provisioner)?$`)
	kindOf = regexp.MustCompile(`(?m)^kind: (StorageClass|ServiceAccount|ConfigMap)$`)
)

// IsShipped reports whether a name is that of an account, a class or a ConfigMap of this project. A
// new provisioner of such a name would have the permissions of the shipped one, or take its place.
func IsShipped(name string) bool {
	for _, in := range []fs.FS{configmaps.Files, deploy.Files} {
		files, err := fs.Glob(in, "*.yaml")
		more, failed := fs.Glob(in, "*/*.yaml")
		if err != nil || failed != nil {
			panic("the patterns are well-formed")
		}
		for _, file := range append(files, more...) {
			if text, err := read(in, file); err == nil && declares(text, name) {
				return true
			}
		}
	}
	return false
}

func declares(manifests, name string) bool {
	for object := range strings.SplitSeq(manifests, "\n"+separator) {
		if m := nameOf.FindStringSubmatch(object); m != nil && m[1] == name && kindOf.MatchString(object) {
			return true
		}
	}
	return false
}
