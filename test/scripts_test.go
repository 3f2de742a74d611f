package test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	kubectlCall = regexp.MustCompile(`\bkubectl [a-z]+ [^|]*`)
	// oneRequest is a call that asks the API server for nothing but what it does.
	oneRequest = regexp.MustCompile(`^kubectl ((patch|annotate) --local|(create|get) --raw) `)
	bashBlock  = regexp.MustCompile("(?s)```bash\n(.*?)```")
)

// Without --local or --raw kubectl first asks for all that the API server serves, at every run anew.
func TestScriptsOfProvisionersMakeNoNeedlessRequests(t *testing.T) {
	scripts := map[string]string{}
	for _, file := range tracked(t) {
		if strings.HasPrefix(file, "scripts/") && strings.HasSuffix(file, "-provisioner.sh") {
			scripts[file] = content(t, file)
		}
	}
	blocks := bashBlock.FindAllStringSubmatch(content(t, "docs/contract.md"), -1)
	for _, block := range blocks {
		scripts["docs/contract.md"] += block[1]
	}
	if len(scripts) != 7 || len(blocks) == 0 {
		t.Errorf("there are %d scripts and %d blocks", len(scripts), len(blocks))
	}
	calls := 0
	for where, script := range scripts {
		for line := range strings.Lines(script) {
			code, _, _ := strings.Cut(line, "# ")
			for _, call := range kubectlCall.FindAllString(code, -1) {
				calls++
				if !oneRequest.MatchString(call) {
					t.Errorf("%s: %s", where, call)
				}
			}
		}
	}
	if calls < 3*len(scripts)-3 { // the isolated one makes none
		t.Errorf("only %d calls of kubectl are found", calls)
	}
}
