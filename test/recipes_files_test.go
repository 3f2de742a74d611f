package test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recipes returns the scripts of each recipe, as configmaps/recipes.txt lists them.
func recipes(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for line := range strings.Lines(content(t, "configmaps/recipes.txt")) {
		if fields := strings.Fields(line); fields[0] != "#" {
			out[fields[0]] = fields[1:]
		}
	}
	return out
}

var (
	// included is a line by which a script reads another one, with what shellcheck needs before it.
	included = regexp.MustCompile(`(?m)^(?:# shellcheck source=.*\n)?\. "\$\{0%/\*\}/([a-z-]+\.sh)"\n`)
	// printed is a line by which a script prints another one.
	printed = regexp.MustCompile(`(?m)^( *)cat "\$\{0%/\*\}/([a-z-]+\.sh)"\n`)
	// directive is a line that is for shellcheck alone.
	directive = regexp.MustCompile(`(?m)^# shellcheck shell=.*\n`)
	// beforeAScript ends before the text of a script in a manifest, and shebang is its first line.
	beforeAScript = regexp.MustCompile(`(?:script:|-) \|\n$`)
	shebang       = regexp.MustCompile(`^( +)#!`)
)

// textOf returns a script as one text: what it reads from beside it is part of it.
func textOf(t *testing.T, script string) string {
	t.Helper()
	text := directive.ReplaceAllString(content(t, "scripts/"+script), "")
	text = included.ReplaceAllStringFunc(text, func(line string) string {
		return textOf(t, included.FindStringSubmatch(line)[1])
	})
	return printed.ReplaceAllStringFunc(text, func(line string) string {
		m := printed.FindStringSubmatch(line)
		return m[1] + "cat <<'END_OF_PROGRAM'\n" + textOf(t, m[2]) + "END_OF_PROGRAM\n"
	})
}

// withScripts returns a manifest with these scripts in place of those that it has. The text of one
// ends before the first line with less indentation than its own.
func withScripts(t *testing.T, manifest string, scripts []string) string {
	t.Helper()
	var out strings.Builder
	left, indent, before := scripts, "", ""
	for line := range strings.Lines(manifest) {
		if indent != "" && (line == "\n" || strings.HasPrefix(line, indent)) {
			continue // of the earlier text
		}
		indent = ""
		if m := shebang.FindStringSubmatch(line); m != nil && beforeAScript.MatchString(before) {
			if len(left) == 0 {
				t.Fatalf("the file has more scripts than %q", scripts)
			}
			indent = m[1]
			for line := range strings.Lines(textOf(t, left[0])) {
				out.WriteString(strings.TrimRight(indent+line, " \n") + "\n")
			}
			left = left[1:]
			continue
		}
		out.WriteString(line)
		before = line
	}
	if len(left) > 0 {
		t.Fatalf("recipes.txt lists %q, and the file has no place for %q", scripts, left)
	}
	return out.String()
}

// The DaemonSet of loop once lost its mounts, which stood after its script.
func TestWhatStandsAfterAScriptIsKept(t *testing.T) {
	const before, after = "args:\n  - -c\n  - |\n    ", "  volumes: []\n---\nscript: |\n  "
	got := withScripts(t, before+"#!/bin/sh\n\n    old\n"+after+"#!/bin/sh\n  old\n", []string{"loop-attacher.sh", "directory-provisioner.sh"})
	for _, want := range []string{before + "#!/bin/bash\n    #", "\n" + after + "#!/bin/bash\n  #"} {
		if !strings.Contains(got, want) || strings.Contains(got, "old\n") {
			t.Errorf("there is no %q, or an old text, in\n%s", want, got)
		}
	}
}

// What is applied is what is read, tested and checked in the directory scripts.
func TestEachRecipeHasItsScriptsInItsFile(t *testing.T) {
	for name, scripts := range recipes(t) {
		t.Run(name, func(t *testing.T) {
			file := "configmaps/" + name + ".yaml"
			want := withScripts(t, content(t, file), scripts)
			if *update {
				if err := os.WriteFile(filepath.Join(repository, file), []byte(want), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(content(t, file), want); diff != "" {
				t.Errorf("%s has (-), scripts has (+); make golden writes it:\n%s", file, diff)
			}
		})
	}
}

// The kubelet replaces $(NAME) in the arguments of a container, and $$.
func TestTheKubeletChangesNoScriptOfADaemonSet(t *testing.T) {
	text := content(t, "scripts/loop-attacher.sh")
	if found := regexp.MustCompile(`\$\$|\$\(\w+\)`).FindString(text); found != "" {
		t.Errorf("the kubelet would change %s", found)
	}
}

// A script that no recipe names would be shipped by no file. The one of the original design is an
// image of its own.
func TestEachScriptIsOfARecipe(t *testing.T) {
	var want []string
	for file := range provisioners(t) {
		want = append(want, filepath.Base(file))
	}
	want = append(want, "loop-attacher.sh")
	got := map[string]bool{"environment-provisioner.sh": true}
	for _, scripts := range recipes(t) {
		for _, script := range scripts {
			got[script] = true
		}
	}
	slices.Sort(want)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("recipes.txt lists\n%q, and there are\n%q", names, want)
	}
}
