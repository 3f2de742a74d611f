package resolve

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// mostJudged is how many judgements are kept, some KiB each. A class has a few, one for each revision in use.
const mostJudged = 1000

// Judged keeps what was found in config sources. Each observation of a claim needs that twice, and building the pod to judge it takes
// most of an observation's time.
type Judged struct {
	mu       sync.Mutex
	bySource map[string]judgement
}

type judgement struct {
	cfg    config.Config
	faults field.ErrorList
}

// judge parses a source and checks its pod, or returns what was found before.
func (f *Resolver) judge(src config.Source) (config.Config, field.ErrorList) {
	j := f.Judged
	if j == nil {
		j = &Judged{}
	}
	key := src.Revision() + "\n" + string(src.Encode())
	j.mu.Lock()
	defer j.mu.Unlock()
	found, known := j.bySource[key]
	if !known {
		found.cfg, found.faults = config.Parse(src, f.Provisioner)
		if len(found.faults) == 0 {
			found.faults = jobs.Check(found.cfg, f.Allowed)
		}
		found.cfg.Warnings = slices.Clip(found.cfg.Warnings) // whoever appends to them makes a copy
		if len(j.bySource) >= mostJudged || j.bySource == nil {
			j.bySource = map[string]judgement{}
		}
		j.bySource[key] = found
	}
	return found.cfg, found.faults
}
