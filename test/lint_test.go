package test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// module is the path of this Go module.
const module = "github.com/flex-provisioner/flex-provisioner"

// lintConfig is what of .golangci.yml names files and packages of this repository.
type lintConfig struct {
	Linters struct {
		Settings struct {
			Depguard struct {
				Rules map[string]depguardRule `json:"rules"`
			} `json:"depguard"`
		} `json:"settings"`
		Exclusions struct {
			Paths []string `json:"paths"`
			Rules []struct {
				Path       string `json:"path"`
				PathExcept string `json:"path-except"`
			} `json:"rules"`
		} `json:"exclusions"`
	} `json:"linters"`
}

type depguardRule struct {
	Files []string `json:"files"`
	Deny  []struct {
		Pkg string `json:"pkg"`
	} `json:"deny"`
}

// globs of depguard: ** matches everything, * and ? all but a slash.
var globParts = regexp.MustCompile(`\*\*|\*|\?|\{[^}]*\}|[^*?{}]+`)

// compileGlob turns a glob of depguard into an expression over "/" and a path that is relative to
// the root.
func compileGlob(t *testing.T, glob string) *regexp.Regexp {
	t.Helper()
	var out strings.Builder
	for _, part := range globParts.FindAllString(glob, -1) {
		switch {
		case part == "**":
			out.WriteString(".*")
		case part == "*":
			out.WriteString("[^/]*")
		case part == "?":
			out.WriteString("[^/]")
		case strings.HasPrefix(part, "{"):
			out.WriteString("(" + strings.ReplaceAll(regexp.QuoteMeta(part[1:len(part)-1]), ",", "|") + ")")
		default:
			out.WriteString(regexp.QuoteMeta(part))
		}
	}
	compiled, err := regexp.Compile("^" + out.String() + "$")
	if err != nil {
		t.Fatalf("the glob %s: %v", glob, err)
	}
	return compiled
}

// deadGlobs returns the globs of a rule that match none of some files. Where the rule leaves out
// tests, a test is no match.
func (r depguardRule) deadGlobs(t *testing.T, files []string) []string {
	t.Helper()
	if slices.Contains(r.Files, "!$test") {
		files = slices.DeleteFunc(slices.Clone(files), func(f string) bool { return strings.HasSuffix(f, "_test.go") })
	}
	var dead []string
	for _, glob := range r.Files {
		bare := strings.TrimPrefix(glob, "!")
		if strings.HasPrefix(bare, "$") {
			continue
		}
		if expression := compileGlob(t, bare); !slices.ContainsFunc(files, func(f string) bool { return expression.MatchString("/" + f) }) {
			dead = append(dead, glob)
		}
	}
	return dead
}

// deadPackages returns the packages of ours that a rule forbids and that do not exist.
func (r depguardRule) deadPackages(files []string) []string {
	var dead []string
	for _, deny := range r.Deny {
		pkg := strings.TrimSuffix(deny.Pkg, "$")
		below, ours := strings.CutPrefix(pkg, module+"/")
		if ours && !slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(path.Dir(f)+"/", below+"/") }) {
			dead = append(dead, pkg)
		}
	}
	return dead
}

// linted returns the Go files of this module: those of the lab's modules are not linted.
func linted(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(tracked(t, ".go"), func(f string) bool { return strings.HasPrefix(f, "test/cluster/") })
}

// A package that moves must not leave its rules behind without a word.
func TestLintRulesMatchFilesThatExist(t *testing.T) {
	var config lintConfig
	if err := yaml.Unmarshal([]byte(content(t, ".golangci.yml")), &config); err != nil {
		t.Fatal(err)
	}
	files := linted(t)
	rules := config.Linters.Settings.Depguard.Rules
	if len(rules) == 0 {
		t.Fatal(".golangci.yml has no rules of depguard: the test does not see them")
	}
	for name, rule := range rules {
		for _, glob := range rule.deadGlobs(t, files) {
			t.Errorf(".golangci.yml, depguard rule %s: the glob %s matches no file", name, glob)
		}
		for _, pkg := range rule.deadPackages(files) {
			t.Errorf(".golangci.yml, depguard rule %s: the package %s does not exist", name, pkg)
		}
	}
	expressions := config.Linters.Exclusions.Paths
	for _, rule := range config.Linters.Exclusions.Rules {
		expressions = append(expressions, rule.Path, rule.PathExcept)
	}
	for _, expression := range expressions {
		if expression != "" && !slices.ContainsFunc(files, regexp.MustCompile(expression).MatchString) {
			t.Errorf(".golangci.yml, exclusions: the path %s matches no file", expression)
		}
	}
}

func TestDeadLintRulesAreSeen(t *testing.T) {
	files := []string{"contract/env.go", "dispatcher/jobs/build.go", "dispatcher/jobs/build_test.go", "moved/only_test.go"}
	rule := depguardRule{Files: []string{
		"**/contract/*.go", "!$test", "$all", "**/dispatcher/**/*.go", "**/{contract,x}/env.go", "!**/dispatcher/*.go", "**/moved/*.go",
	}}
	if got, want := rule.deadGlobs(t, files), []string{"!**/dispatcher/*.go", "**/moved/*.go"}; !slices.Equal(got, want) {
		t.Errorf("the globs that match no file are %q, want %q", got, want)
	}
	for _, pkg := range []string{"k8s.io/api", module, module + "/dispatcher", module + "/dispatcher/jobs$", module + "/dispatcher/job"} {
		rule.Deny = append(rule.Deny, struct {
			Pkg string `json:"pkg"`
		}{pkg})
	}
	if got, want := rule.deadPackages(files), []string{module + "/dispatcher/job"}; !slices.Equal(got, want) {
		t.Errorf("the packages that do not exist are %q, want %q", got, want)
	}
}
