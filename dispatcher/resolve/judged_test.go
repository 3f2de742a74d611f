package resolve

import (
	"fmt"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

func source(image string) config.Source {
	return config.Source{Namespace: "flex-provisioner", Name: "nfs", Class: "nfs", Data: map[string]string{"image": image, "service-account-name": "nfs"}}
}

// A source that changes is judged anew though its name stays; one that does not change is judged once.
func TestASourceIsJudgedOnceAndByItsContent(t *testing.T) {
	f := &Resolver{Provisioner: "flex-provisioner.io", Judged: &Judged{}}
	if _, faults := f.judge(source("registry.example/nfs:1")); len(faults) > 0 {
		t.Fatalf("a config without faults is refused: %v", faults)
	}
	f.judge(source("registry.example/nfs:1"))
	if kept := len(f.Judged.bySource); kept != 1 {
		t.Errorf("%d judgements of one source are kept, not 1", kept)
	}
	for range 2 {
		if _, faults := f.judge(source("")); len(faults) == 0 {
			t.Error("a config without an image is accepted, because the one before it was")
		}
	}
}

func TestJudgementsAreBounded(t *testing.T) {
	f := &Resolver{Provisioner: "flex-provisioner.io", Judged: &Judged{}}
	for i := range mostJudged + 1 {
		f.judge(source(fmt.Sprint("registry.example/nfs:", i)))
	}
	if kept := len(f.Judged.bySource); kept > mostJudged {
		t.Errorf("%d judgements are kept, more than %d", kept, mostJudged)
	}
}
