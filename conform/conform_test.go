package conform_test

import (
	"slices"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/conform"
)

// notInMemory are promises for which the cluster in memory has no part: Secrets of volumes, and pods
// that mount them.
var notInMemory = map[string]conform.Verdict{"secret": conform.NotClaimed, "mount": conform.NotProvoked}

func TestAnImageThatKeepsThePromisesIsFoundToKeepThem(t *testing.T) {
	inWorld(t, "", func(w *world) {
		report, err := w.conform()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Promises {
			want := conform.Kept
			if other, is := notInMemory[p.Promise]; is {
				want = other
			}
			if p.Verdict != want {
				t.Errorf("%s: %s, not %s: %s", p.Promise, p.Verdict, want, p.Note)
			}
		}
		if len(report.Promises) != len(conform.Promises()) || len(report.Left) > 0 || len(w.volumes) > 0 {
			t.Errorf("%d promises, left are %v and the volumes %v", len(report.Promises), report.Left, w.volumes)
		}
	})
}

// The image keeps all but one promise. That one is found, and no other.
func TestTheOnePromiseThatAnImageBreaksIsFound(t *testing.T) {
	t.Parallel()
	for _, p := range conform.Promises() {
		if _, is := notInMemory[p.Name]; is {
			continue
		}
		t.Run(p.Name, func(t *testing.T) {
			inWorld(t, p.Name, func(w *world) {
				report, err := w.conform()
				if err != nil {
					t.Log(err)
				}
				var broken []string
				for _, result := range report.Promises {
					if result.Verdict == conform.Broken {
						broken = append(broken, result.Promise)
					}
					if result.Verdict == conform.Failed {
						t.Errorf("%s could not be tested: %s", result.Promise, result.Note)
					}
				}
				if !slices.Equal(broken, []string{p.Name}) {
					t.Errorf("broken are %v\n%s", broken, saidOf(report))
				}
			})
		})
	}
}
