package shell

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// What it does where there are quotas, TestXFSVolumeHasItsSizeGrowsAndIsDeleted shows.
func TestProjectSaysWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		code      int
		says      string
	}{
		"nothing":          {nil, contract.ExitUsage, "one or three arguments are required"},
		"no bytes":         {[]string{"DIR", "1"}, contract.ExitUsage, "one or three arguments are required"},
		"the project 0":    {[]string{"DIR", "0", "1"}, contract.ExitUsage, `"0" is no number of a project`},
		"33 bits":          {[]string{"DIR", "4294967296", "1"}, contract.ExitUsage, "must be from 1 to 4294967295"},
		"a size with unit": {[]string{"DIR", "1", "1Gi"}, contract.ExitUsage, `"1Gi" is no number of bytes`},
		"no directory":     {[]string{"DIR/none"}, contract.ExitTempFail, "cannot be opened"},
		"no quotas":        {[]string{"DIR"}, contract.ExitTempFail, "Remedy: mount its file system with the option prjquota"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.Provision, 1)
			arguments := []string{"project"}
			for _, argument := range test.arguments {
				arguments = append(arguments, strings.Replace(argument, "DIR", p.dir, 1))
			}
			code := p.flex(arguments...)
			if code != test.code || !strings.Contains(p.says.String(), test.says) {
				t.Errorf("exit %d: %s", code, &p.says)
			}
		})
	}
}
