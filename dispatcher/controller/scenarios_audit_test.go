package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// leftUID is the UID of a claim that does not exist any more.
const leftUID = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50"

// fixing is an administrator's audit --fix at work.
type fixing struct {
	said string
	err  error
	done atomic.Bool // set after the others
}

// fix lets an administrator's audit delete the volume that is left. When ctx ends, it is
// interrupted, and when life ends, it is killed.
func (w *world) fix(ctx, life context.Context) *fixing {
	w.T.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		w.T.Fatal(err)
	}
	client := w.Server.Client(fakecluster.Admin)
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return life.Err() != nil, nil, life.Err() })
	auditor := &run.Auditor{
		Client: client, Objects: metadatafake.NewSimpleMetadataClient(scheme), Clock: clock.RealClock{},
		Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespace: fakecluster.ConfigNamespace, Cluster: run.Cluster{UID: "c-1"}, Timeout: 15 * time.Minute,
	}
	v := audit.Volume{UID: leftUID, Volume: "5d1f0b6e-0b1c-4c8e-9a57-2d3e4f506071", Size: 1 << 30, Namespace: fakecluster.ClaimNamespace, Name: "data", Class: "gold", ClusterUID: "c-1"}
	look := run.Look{State: audit.State{ClusterUID: "c-1"}, Found: []audit.Finding{{Kind: audit.VolumeLeft, UID: leftUID, Class: "gold", ListedBy: "gold", Volume: v}}}
	f := &fixing{}
	go func() {
		f.err = auditor.Fix(ctx, look, nil, func(format string, args ...any) { f.said += fmt.Sprintf(format, args...) })
		f.done.Store(true)
	}()
	return f
}

func (f *fixing) isDone() bool { return f.done.Load() }

// An audit's Job is the audit's alone: the dispatcher neither starts nor cancels nor records it,
// and gives it no slot.
func TestAnAuditDeletesAVolumeBesideADispatcher(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(nil, "verbs", "provision,delete,list", "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute}
		w.Storage[leftUID] = true
		w.Start()
		w.CreateClaim("data")
		w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		f := w.fix(w.T.Context(), w.T.Context())
		w.Until("both run", 10*time.Second, func() bool { return len(w.RunningPods()) == 2 })
		w.Until("the volume is deleted", 5*time.Minute, f.isDone)
		if f.err != nil || w.Storage[leftUID] || !strings.Contains(f.said, "was deleted") {
			w.T.Errorf("said %q, %v; the volume is there: %t", f.said, f.err, w.Storage[leftUID])
		}
		w.Until("the claim is bound", 5*time.Minute, w.IsBound("data"))
		w.MustRun("provision", "delete")
		if made := w.CreatedJobs(contract.Delete); len(made) != 1 || made[0].By != fakecluster.Admin {
			w.T.Errorf("the Jobs of the volume are %v", made)
		}
		w.MustEmit("Job/delete-"+leftUID+"-1", "", 0)
	})
}

// An administrator restores the PV of the volume while the delete waits for its image, lets it be
// released, and so the dispatcher wants to delete the volume, too.
func TestOneRunPerClaimAlsoOfAnAuditAndADispatcher(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(nil, "verbs", "provision,delete,list")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 20 * time.Second}
		w.Storage[leftUID] = true
		w.Start()
		f := w.fix(w.T.Context(), w.T.Context())
		w.Until("the delete runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		claim := w.CreateClaim("other")
		w.Until("it has a revision", time.Minute, w.IsBound("other"))
		pv := w.PVOf(claim)
		restored := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: contract.PVName(leftUID), Annotations: map[string]string{
			contract.AnnClaimUID: leftUID, contract.AnnProvisionedBy: contract.ProvisionerName, contract.AnnRevision: pv.Annotations[contract.AnnRevision],
		}}, Spec: *pv.Spec.DeepCopy()}
		restored.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: fakecluster.ClaimNamespace, Name: "data", UID: leftUID}
		restored.Spec.NFS = &corev1.NFSVolumeSource{Server: "filer", Path: "/" + leftUID}
		fakecluster.Create(w, fakecluster.Admin, restored)
		w.Until("the audit is done", 5*time.Minute, f.isDone)
		w.Until("the PV is gone", time.Hour, func() bool { return fakecluster.Get[*corev1.PersistentVolume](w, "", restored.Name) == nil })
		if w.Storage[leftUID] {
			w.T.Error("the volume is there")
		}
		w.MustRun("delete", "provision", "delete")
	})
}

// The audit is killed at any time: what it leaves behind ends by itself, and the audit can be run
// again.
func TestAnAuditThatIsKilledCanBeRunAgain(t *testing.T) {
	for _, after := range []time.Duration{100 * time.Millisecond, 1500 * time.Millisecond, 5 * time.Second, 30 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(nil, "verbs", "provision,delete,list")
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 10 * time.Second, StartsAfter: 2 * time.Second}
				w.Storage[leftUID] = true
				w.Start()
				ctx, kill := context.WithTimeout(w.T.Context(), after)
				defer kill()
				first := w.fix(ctx, ctx)
				w.Until("it has ended", time.Minute, first.isDone)
				w.Until("its Job no longer exists", time.Hour, func() bool { return len(fakecluster.List[*batchv1.Job](w)) == 0 })
				w.Storage[leftUID] = true
				again := w.fix(w.T.Context(), w.T.Context())
				w.Until("it has ended", time.Minute, again.isDone)
				if again.err != nil || w.Storage[leftUID] {
					w.T.Errorf("said %q, %v; the volume is there: %t", again.said, again.err, w.Storage[leftUID])
				}
				w.Until("nothing is left", time.Hour, w.Empty)
			})
		})
	}
}

// The container goes on for a while after its pod was deleted. The next audit waits for it: no two
// containers delete the volume at a time.
func TestAnAuditThatIsInterruptedKeepsItsNameUntilItsPodHasEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(nil, "verbs", "provision,delete,list")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute, EndsAfter: 20 * time.Second}
		w.Storage[leftUID] = true
		ctx, interrupt := context.WithTimeout(w.T.Context(), 5*time.Second)
		defer interrupt()
		first := w.fix(ctx, w.T.Context())
		w.Until("it has ended", time.Minute, first.isDone)
		second := w.fix(w.T.Context(), w.T.Context())
		w.Until("it has ended", 5*time.Minute, second.isDone)
		if second.err != nil || w.Storage[leftUID] {
			w.T.Errorf("said %q, %v; the volume is there: %t", second.said, second.err, w.Storage[leftUID])
		}
	})
}
