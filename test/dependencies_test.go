package test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// requirement is what a file of modules requires.
type requirement struct {
	Path     string
	Indirect bool
}

// requiredBy returns the modules that a file of modules names for the code, or for its tools.
func requiredBy(t *testing.T, file string) []string {
	t.Helper()
	edit := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", file)
	edit.Dir = root
	text, err := edit.Output()
	if err != nil {
		t.Fatalf("read %s: %v", file, err)
	}
	var mod struct {
		Require []requirement
		Tool    []struct{ Path string }
	}
	if err := json.Unmarshal(text, &mod); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range mod.Require {
		isTool := slices.ContainsFunc(mod.Tool, func(tool struct{ Path string }) bool { return strings.HasPrefix(tool.Path, m.Path+"/") })
		if !m.Indirect || isTool {
			out = append(out, m.Path)
		}
	}
	return out
}

var rowOfDependency = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\| (20\\d\\d-\\d\\d) \\|$")

// licences have these words in their texts.
var licences = map[string]string{
	"Apache-2.0":   "Apache License",
	"BSD-2-Clause": "Redistribution and use in source and binary forms",
	"BSD-3-Clause": "used to endorse or promote",
	"MIT":          "Permission is hereby granted, free of charge",
	"GPL-3.0":      "GNU GENERAL PUBLIC LICENSE",
}

// A dependency without a row has no reason to be there.
func TestEachDependencyHasARow(t *testing.T) {
	t.Parallel()
	required := map[string]bool{}
	for _, file := range []string{"go.mod", "tools.mod"} {
		for _, path := range requiredBy(t, file) {
			required[path] = true
		}
	}
	rows := map[string]bool{}
	for _, row := range rowOfDependency.FindAllStringSubmatch(content(t, "docs/decisions/dependencies.md"), -1) {
		if rows[row[1]] {
			t.Errorf("%s has two rows", row[1])
		}
		rows[row[1]] = true
		checkLicences(t, row[1], strings.Split(row[3], ", "))
	}
	if !maps.Equal(required, rows) {
		t.Errorf("docs/decisions/dependencies.md has rows for\n%q, and go.mod and tools.mod require\n%q", slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(required)))
	}
}

// checkLicences compares the licences of a row with the texts in the module. The tools are not
// there before make lint or make vuln.
func checkLicences(t *testing.T, path string, named []string) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", path)
	list.Dir = root
	out, err := list.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "LICENSE*"))
	if err != nil || len(files) == 0 {
		t.Errorf("%s has no LICENSE (%v)", path, err)
		return
	}
	var texts strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts.Write(text)
	}
	for _, name := range named {
		if words := licences[name]; words == "" || !strings.Contains(strings.Join(strings.Fields(texts.String()), " "), words) {
			t.Errorf("%s: its LICENSE does not have the words of %s", path, name)
		}
	}
}
