// Package test checks the repository as a whole: links of its pages, the configuration of its
// linters, its words, sizes, imports and invariants.
package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is its root, seen from this package's tests.
const repository = ".."

// tracked returns the paths of all files that git tracks and that exist, relative to the root. With
// endings it returns only files whose names end so.
func tracked(t *testing.T, endings ...string) []string {
	t.Helper()
	git := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z")
	git.Dir = repository
	out, err := git.Output()
	if err != nil {
		t.Fatalf("list the files that git tracks: %v", err)
	}
	var paths []string
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(repository, path)); err == nil && hasEnding(path, endings) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Fatalf("git tracks no file with the endings %q", endings)
	}
	return paths
}

func hasEnding(path string, endings []string) bool {
	return len(endings) == 0 || slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(path, e) })
}

// content returns the text of a tracked file.
func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
