package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// clone is a repository of a test.
type clone struct {
	t   *testing.T
	dir string
}

// git runs git there, as a user whose own settings count for nothing.
func (c clone) git(args ...string) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "git", args...)
	cmd.Dir = c.dir
	cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

func (c clone) commit(subjects ...string) {
	c.t.Helper()
	for _, subject := range subjects {
		c.git("commit", "--quiet", "--allow-empty", "--message", subject)
	}
}

// check runs hack/check-commits.sh there, and returns what it says and whether it is content.
func (c clone) check() (string, bool) {
	c.t.Helper()
	script, err := filepath.Abs(repository + "/hack/check-commits.sh")
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.CommandContext(c.t.Context(), "bash", script)
	cmd.Dir = c.dir
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// upstream is a repository whose main has two commits, and the first subject is an old one.
func upstream(t *testing.T) clone {
	t.Helper()
	c := clone{t, t.TempDir()}
	c.git("init", "--quiet", "--initial-branch=main")
	c.commit("an old subject; with two changes", "config: read a key")
	return c
}

// cloned returns a clone of it, with the arguments of git clone.
func cloned(t *testing.T, from clone, args ...string) clone {
	t.Helper()
	to := clone{t, filepath.Join(t.TempDir(), "clone")}
	args = append([]string{"clone", "--quiet"}, args...)
	from.git(append(args, "file://"+from.dir, to.dir)...)
	return to
}

func TestSubjectsOfAChangeAreChecked(t *testing.T) {
	long := "config: " + strings.Repeat("ü", 64) // 72 characters, of 136 bytes
	for subject, refused := range map[string]string{
		long:                               "",
		long + "x":                         "73 characters",
		"config: read a key; docs: say it": "a semicolon",
		"Merge branch 'main' into a branch with a name that is as long as this": "",
	} {
		c := cloned(t, upstream(t))
		c.git("switch", "--quiet", "--create", "change")
		c.commit("config: the commit before", subject)
		said, ok := c.check()
		if ok != (refused == "") || !strings.Contains(said, refused) {
			t.Errorf("of %q it says %v, %s", subject, ok, said)
		}
		if !strings.Contains(said, "where it left origin/main") {
			t.Errorf("it does not say where it looked: %s", said)
		}
	}
}

// An old subject on main is of no change, and the remote's default branch need not be here.
func TestTheRightCommitsOfACloneAreChecked(t *testing.T) {
	from := upstream(t)
	from.git("switch", "--quiet", "--create", "change")
	from.commit("config: one; two", "config: read a second key")
	from.git("switch", "--quiet", "main")
	for name, tt := range map[string]struct {
		clone   clone
		before  string
		refused bool
		said    string
	}{
		"main":               {clone: cloned(t, from), said: "check-commits: 0 commits, those since"},
		"an old commit":      {clone: cloned(t, from), before: "checkout -q HEAD~1", said: "0 commits, those since"},
		"a branch":           {clone: cloned(t, from), before: "checkout -q change", refused: true, said: "2 commits"},
		"without a remote":   {clone: cloned(t, from, "--branch=change", "--origin=other"), said: "1 commits, the last"},
		"one branch":         {clone: cloned(t, from, "--branch=change", "--single-branch"), said: "1 commits, the last"},
		"shallow":            {clone: cloned(t, from, "-b", "change", "--depth=1", "--no-single-branch"), said: "1 commits, the last"},
		"shallow main":       {clone: cloned(t, from, "--depth=1"), said: "0 commits, those since"},
		"main of its own":    {clone: from, before: "checkout -q main", said: "1 commits, the last"},
		"a branch of it":     {clone: from, before: "checkout -q change", refused: true, said: "where it left main"},
		"a merge, as of CI":  {clone: cloned(t, from), before: "merge -q --no-ff origin/change", refused: true, said: "2 commits"},
		"a merge, cut short": {clone: cloned(t, mergeOf(t), "--depth=1", "--branch=merged"), said: "0 commits, the last"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.before != "" {
				tt.clone.git(strings.Fields(tt.before)...)
			}
			said, ok := tt.clone.check()
			if ok == tt.refused || !strings.Contains(said, tt.said) {
				t.Errorf("refused: %v, %s", !ok, said)
			}
		})
	}
}

// mergeOf returns a repository with a branch merged, whose last commit is the merge.
func mergeOf(t *testing.T) clone {
	t.Helper()
	c := upstream(t)
	c.git("switch", "--quiet", "--create", "merged", "HEAD~1")
	c.commit("config: read another key")
	subject := "Merge " + strings.Repeat("0", 40) + " into " + strings.Repeat("1", 40)
	c.git("merge", "--quiet", "--no-ff", "--message", subject, "main")
	return c
}
