package main

import (
	"cmp"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// initsAllocate is how many bytes the inits of all packages may allocate before main begins. A claim
// waits for them at every run. They are 3.0 MB, and take some 40 ms on a machine of two processors;
// bytes are the same on a busy machine, and time is not.
const initsAllocate = 3_500_000

// traced is one line of GODEBUG=inittrace=1: a package, and what its init allocated (runtime.doInit1).
var traced = regexp.MustCompile(`(?m)^init (\S+) @.* (\d+) bytes, \d+ allocs$`)

func TestTheInitsOfTheCommandAllocateLittle(t *testing.T) {
	cmd := exec.Command(build(t), "--version")
	cmd.Env = []string{"GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	type init struct {
		pkg   string
		bytes int
	}
	var inits []init
	sum := 0
	for _, m := range traced.FindAllStringSubmatch(string(out), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		inits = append(inits, init{m[1], n})
		sum += n
	}
	slices.SortFunc(inits, func(a, b init) int { return cmp.Compare(b.bytes, a.bytes) })
	if len(inits) < 50 {
		t.Fatalf("the inits of %d packages were traced, which are too few:\n%s", len(inits), out)
	}
	t.Logf("%d bytes, most of them by %v", sum, inits[:8])
	if sum > initsAllocate {
		t.Errorf("%d bytes are more than %d, most of them by %v", sum, initsAllocate, inits[:8])
	}
}
