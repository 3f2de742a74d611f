package conform_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// notInMemory are promises for which the cluster in memory has no part: Secrets of volumes, and pods
// that mount them, by which the data of a clone are compared.
var notInMemory = map[string]conform.Verdict{"secret": conform.NotClaimed, "mount": conform.NotProvoked, "clone": conform.NotProvoked}

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
	for _, p := range conform.Promises() {
		if _, is := notInMemory[p.Name]; is && p.Name != "clone" {
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

// saidOf returns what is printed of a report.
func saidOf(report *conform.Report) string {
	var out strings.Builder
	for _, p := range report.Promises {
		if err := p.Print(&out); err != nil {
			return fmt.Sprint(err)
		}
	}
	return out.String()
}

// whole returns what is left in the cluster of what a run creates.
func (w *world) whole() (left []string) {
	for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
		left = append(left, "the claim "+claim.Name)
	}
	for _, pv := range fakecluster.List[*corev1.PersistentVolume](w) {
		left = append(left, pv.Name)
	}
	for _, class := range fakecluster.List[*storagev1.StorageClass](w) {
		if class.Name != "gold" {
			left = append(left, "the class "+class.Name)
		}
	}
	for uid := range w.volumes {
		left = append(left, "the volume of "+uid)
	}
	if w.closed {
		left = append(left, "the policy")
	}
	return left
}

// It is interrupted after each promise: at once, or while the next one is tested.
func TestAnInterruptedRunLeavesNothing(t *testing.T) {
	for i, p := range conform.Promises() {
		after := time.Duration(i%2) * 1500 * time.Millisecond
		t.Run(p.Name, func(t *testing.T) {
			inWorld(t, "", func(w *world) {
				w.interrupt = func(result conform.Result, stop func()) {
					if result.Promise == p.Name {
						time.AfterFunc(after, stop)
					}
				}
				report, err := w.conform(func(r *conform.Run) { r.Skip = map[string]string{"provision-killed": "it takes long"} })
				if last := report.Promises[len(report.Promises)-1]; (err == nil) != (last.Promise == "quiet") {
					t.Errorf("after %s: %v", last.Promise, err)
				}
				if left := w.whole(); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
			})
		})
	}
}

// It is interrupted at a request of its own, whatever that is for.
func TestARunThatIsInterruptedAtARequestLeavesNothing(t *testing.T) {
	for at := 1; !endsBefore(t, at); at += 1 + at/4 {
	}
}

// The race detector sees one of them.
func TestARunThatIsInterruptedMidwayLeavesNothing(t *testing.T) {
	const midway = 500
	if endsBefore(t, midway) {
		t.Errorf("it makes less than %d requests", midway)
	}
}

// endsBefore interrupts a run at one of its requests, unless it ends before.
func endsBefore(t *testing.T, at int) (ended bool) {
	t.Helper()
	some := []string{"provision", "delete", "provision-again", "provision-abandoned", "delete-killed", "expand", "bad-config", "batch"}
	inWorld(t, "", func(w *world) {
		w.interruptAt = at
		report, err := w.conform(func(r *conform.Run) { r.Only = some })
		if ended = err == nil; !ended && !errors.Is(err, context.Canceled) {
			t.Errorf("at the request %d: %v", at, err)
		}
		if left := w.whole(); len(left) > 0 || report != nil && len(report.Left) > 0 {
			t.Errorf("at the request %d left are %v: %+v", at, left, report)
		}
	})
	return ended
}

func TestWhatAnAdministratorChoosesIsTested(t *testing.T) {
	inWorld(t, "refuses", func(w *world) {
		report, err := w.conform(func(r *conform.Run) {
			r.Only, r.Skip, r.Keep = []string{"delete", "refuses", "batch"}, map[string]string{"batch": "not today"}, true
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range report.Promises {
			got = append(got, p.Promise+" "+string(p.Verdict))
		}
		if want := []string{"delete kept", "refuses BROKEN", "batch skipped"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if left := w.whole(); !slices.Equal(left, []string{"the claim refuses-1"}) || !report.Kept {
			t.Errorf("kept are %v", left)
		}
		var end strings.Builder
		if err := report.PrintEnd(&end, "%s is left"); err != nil || !strings.Contains(end.String(), "kubectl delete namespace flex-conform-x\n") {
			t.Errorf("it ends with %v\n%s", err, end.String())
		}
		if said := saidOf(report); !strings.Contains(said, "not today") || !strings.Contains(said, "| too large") || !strings.Contains(said, "contract: a claim that cannot") {
			t.Errorf("it says:\n%s", said)
		}
	})
}

func TestAClassWhoseVolumesWouldStayIsNotTested(t *testing.T) {
	for name, change := range map[string]func(*conform.Run){
		"it retains volumes":      func(r *conform.Run) { r.Config.Source.Reclaim = "Retain" },
		"its image lacks delete":  func(r *conform.Run) { r.Config.Verbs = []contract.Verb{contract.Provision} },
		"a promise that is none":  func(r *conform.Run) { r.Only = []string{"frobnicate"} },
		"a size of nothing":       func(r *conform.Run) { r.Size = resource.Quantity{} },
		"no kill, and some tests": func(r *conform.Run) { r.Kills = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "", func(w *world) {
				if _, err := w.conform(change); err == nil {
					t.Error("it was tested")
				}
				w.MustCreateNoJob()
			})
		})
	}
}

// The dispatcher is not at work: that is no promise of the image.
func TestWithoutADispatcherNoPromiseIsBroken(t *testing.T) {
	inWorld(t, "", func(w *world) {
		w.Stop()
		report, _ := w.conform()
		if report.Broken() > 0 || report.Count(conform.Failed) != 1 {
			t.Errorf("it says:\n%s", saidOf(report))
		}
	})
}

// The kubelet lets a container work for two seconds after SIGTERM, in which a script has done its work.
func TestRunsAreKilledInACopyOfTheClass(t *testing.T) {
	inWorld(t, "", func(w *world) {
		report, err := w.conform(func(r *conform.Run) { r.Only = []string{"provision-killed", "delete-killed", "expand-killed"} })
		if err != nil || report.Count(conform.Kept) != 3 {
			t.Fatalf("%v\n%s", err, saidOf(report))
		}
		for _, result := range report.Promises {
			if !strings.HasPrefix(result.Note, "1 of ") {
				t.Errorf("%s: %s", result.Promise, result.Note)
			}
		}
		for _, verb := range []contract.Verb{contract.Provision, contract.Delete, contract.Expand} {
			for _, change := range w.CreatedJobs(verb) {
				pod := change.Now.(*batchv1.Job).Spec.Template.Spec
				if limit := pod.Containers[0].Resources.Limits.Cpu(); pod.ShareProcessNamespace == nil || limit.MilliValue() != 50 {
					t.Errorf("the pod of the Job %s may use a CPU of %s", change.Name, limit)
				}
			}
		}
	})
}

// What nothing has shown is not said to be kept, or is said to stand on the exit code alone.
func TestWhatWasNotSeenIsNotSaidToBeKept(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world, *conform.Run)
		want   map[string]conform.Verdict
		note   string
	}{
		"an API server that learns of the policy later": {func(w *world, r *conform.Run) {
			w.late, r.Only = true, []string{"provision-again", "provision-abandoned"}
		}, map[string]conform.Verdict{"provision-again": conform.NotTested, "provision-abandoned": conform.NotTested}, "accepted the PersistentVolume"},
		"no claim before": {func(_ *world, r *conform.Run) {
			r.Only = []string{"quiet"}
		}, map[string]conform.Verdict{"quiet": conform.NotTested}, "no claim was created"},
		"a storage that is not listed": {func(_ *world, r *conform.Run) {
			r.Config.Verbs = []contract.Verb{contract.Provision, contract.Delete, contract.Expand}
			r.Only = []string{"delete", "provision-abandoned", "expand"}
		}, map[string]conform.Verdict{"delete": conform.Kept, "provision-abandoned": conform.Kept, "expand": conform.Kept}, "by the exit code alone"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, "", func(w *world) {
				report, err := w.conform(func(r *conform.Run) { test.change(w, r) })
				if err != nil {
					t.Fatal(err)
				}
				for _, result := range report.Promises {
					if result.Verdict != test.want[result.Promise] || !strings.Contains(result.Note, test.note) {
						t.Errorf("%s: %s %s", result.Promise, result.Verdict, result.Note)
					}
				}
				if left := w.whole(); len(left) > 0 {
					t.Errorf("left are %v", left)
				}
			})
		})
	}
}

// The image has done its work when the dispatcher's PersistentVolume is refused, and is run again.
func TestRunsAreRepeatedWhereTheDispatcherWrites(t *testing.T) {
	for _, breaks := range []string{"", "provision-again", "provision-abandoned"} {
		inWorld(t, breaks, func(w *world) {
			w.described = true
			fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold"), func(cm *corev1.ConfigMap) {
				cm.Data["write-pv"], cm.Data["batch-size"] = "dispatcher", "1"
			})
			w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
				if _, is := obj.(*corev1.PersistentVolume); is && verb == "create" && w.isClosed() {
					return apierrors.NewForbidden(corev1.Resource("persistentvolumes"), "", errors.New(refusal))
				}
				return nil
			})
			report, err := w.conform(func(r *conform.Run) {
				r.Only = []string{"provision", "delete", "provision-again", "provision-abandoned"}
			})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]conform.Verdict{breaks: conform.Broken}
			for _, result := range report.Promises {
				if result.Verdict != cmp.Or(want[result.Promise], conform.Kept) {
					t.Errorf("%s: %s %s", result.Promise, result.Verdict, result.Note)
				}
			}
		})
	}
}

func (w *world) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}
