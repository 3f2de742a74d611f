package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The Job of a run that failed is kept for longer than that of one that succeeded. When this had
// expired, the claim said again what the failed run had said.
func TestTheResultOfTheNewestRunStays(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Fails(75, "claim: the storage is busy"), fakecluster.Works))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Minute)
		show := func() string {
			a := w.Claim("data").Annotations
			return fmt.Sprint(a[contract.AnnResult], " attempts ", a[contract.AnnAttempts], " exit ", a[contract.AnnExitCode], " message ", a[contract.AnnMessage], " at ", a[contract.AnnProvisionTS])
		}
		before := show()
		w.Advance(20 * time.Minute)
		if after := show(); after != before {
			t.Errorf("before: %s\nafter: %s\n%d jobs", before, after, len(fakecluster.List[*batchv1.Job](w)))
		}
		_ = claim
	})
}

// The command that an event prints for a PV in doubt names the revision of the newest run.
func TestTheRemedyNamesTheRevisionThatMadeTheVolume(t *testing.T) {
	for _, images := range [][2]string{{"localhost/one:v1", "localhost/two:v1"}, {"localhost/two:v1", "localhost/one:v1"}} {
		t.Run(images[0], func(t *testing.T) {
			inWorld(t, func(w *world) {
				revision := w.setUpVictim(fakecluster.Works)
				w.Images[images[0]] = fakecluster.Image{Does: fakecluster.Always(fakecluster.Fails(78, ""))}
				w.Images[images[1]] = fakecluster.Image{Does: fakecluster.Always(spoils(names(&revision)))}
				w.UpdateConfig("image", images[0])
				w.Advance(5 * time.Second)
				claim := w.CreateClaim("data")
				w.Until("the first run has failed", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 2 })
				w.Advance(20 * time.Second)
				w.UpdateConfig("image", images[1])
				w.Until("its PV is in doubt", 5*time.Minute, func() bool { return w.Events.About(aboutClaim("data"), "VolumeInDoubt") != nil })
				all := w.Events.About(aboutClaim("data"), "VolumeInDoubt")
				note := fmt.Sprint(all[len(all)-1])
				made := w.Runs[len(w.Runs)-1].PV.Annotations[contract.AnnRevision]
				command := contract.AnnRevision + "=" + made
				if !strings.Contains(note, command) {
					t.Errorf("the volume was made under %s. The event: %s", made, note)
				}
				_ = claim
			})
		})
	}
}

// suspend does what a queue and the Job controller do: manageJob takes the tracking finalizer off the pods of
// a suspended Job and deletes them, and the Job has not failed.
func (w *world) suspend(job *batchv1.Job) {
	fakecluster.Update(w, "kueue", job, func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
	job = fakecluster.Get[*batchv1.Job](w, job.Namespace, job.Name)
	fakecluster.Update(w, fakecluster.KubeControllerManager, job, func(j *batchv1.Job) { j.Status.StartTime, j.Status.Active = nil, 0 })
	for _, pod := range fakecluster.List[*corev1.Pod](w) {
		if pod.Labels[batchv1.JobNameLabel] == job.Name {
			fakecluster.Update(w, fakecluster.KubeControllerManager, pod, func(p *corev1.Pod) {
				p.Finalizers = slices.DeleteFunc(p.Finalizers, func(f string) bool { return f == batchv1.JobTrackingFinalizer })
			})
			fakecluster.Delete(w, fakecluster.KubeControllerManager, fakecluster.Get[*corev1.Pod](w, pod.Namespace, pod.Name))
		}
	}
}

func (w *world) resume(job *batchv1.Job) {
	fakecluster.Update(w, "kueue", fakecluster.Get[*batchv1.Job](w, job.Namespace, job.Name), func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
}

// A queue suspends a Job at work, and resumes it.
func TestMaxParallelCountsAJobThatIsSuspendedAndResumed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Worlds.ReplacesVanishedPods = true
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 3 * time.Minute}
		w.Start()
		w.CreateClaim("a")
		w.Until("a is at work", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.CreateClaim("b")
		w.Advance(10 * time.Second)
		job := fakecluster.List[*batchv1.Job](w)[0]
		w.suspend(job)
		w.Advance(10 * time.Minute)
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs were created, and the one that is suspended may be resumed", n)
		}
		w.resume(job)
		most := 0
		w.Until("both are bound", 30*time.Minute, func() bool {
			most = max(most, len(w.RunningPods()))
			return w.AllBound()
		})
		if most != 1 {
			t.Errorf("%d pods at work, want 1", most)
		}
	})
}

// What a Job has made before a queue without room suspended it is undone when its claim is deleted.
func TestWhatASuspendedJobHasMadeIsUndone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Worlds.ReplacesVanishedPods = true
		w.SetUpGold(fakecluster.Works)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Halfway(75), Takes: 3 * time.Minute}
		w.Start()
		claim := w.CreateClaim("a")
		w.Until("a is at work", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.Advance(time.Minute)
		job := fakecluster.List[*batchv1.Job](w)[0]
		// what the first pod has made
		w.Storage[string(claim.UID)] = true
		w.suspend(job)
		w.Advance(10 * time.Second)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.Advance(time.Hour)
		if w.Storage[string(claim.UID)] {
			t.Errorf("the volume stays: %v, held %v", w.Verbs(), w.HeldRecords())
		}
		for _, e := range w.Events.About(aboutClaim("a"), "JobSuspended") {
			t.Log(e)
		}
	})
}

// The Job of a failed run once outlived that of the next, which had made the volume under a corrected
// config. A PV without the annotation of its revision was then deleted under the first, which found
// nothing.
func TestAPVWithoutARevisionIsDeletedUnderThatOfItsRun(t *testing.T) {
	for name, stripped := range map[string]bool{"the image writes none": false, "it is taken off": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(fakecluster.Fails(78, "")))
				w.Images["localhost/other-storage:v1"] = fakecluster.Image{Does: fakecluster.Works}
				w.Images[newer] = fakecluster.Image{Does: fakecluster.Always(spoils(func(pv *corev1.PersistentVolume) {
					if !stripped {
						delete(pv.Annotations, contract.AnnRevision)
					}
				}))}
				w.Start()
				claim := w.CreateClaim("data")
				w.Until("the first run has failed", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) == 1 })
				w.Advance(20 * time.Second)
				w.UpdateConfig("image", newer, "server", "storage-b")
				w.Until("bound", time.Minute, w.IsBound("data"))
				w.Advance(15 * time.Minute)
				if stripped {
					fakecluster.Update(w, fakecluster.Admin, w.PVOf(claim), func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnRevision) })
				}
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: func(r *fakecluster.Run) fakecluster.Exit { return fakecluster.Exit{} }} // finds nothing in its storage
				fakecluster.Delete(w, fakecluster.User, claim)
				w.Advance(3 * time.Hour)
				for _, r := range w.RunsOf(contract.Delete) {
					if r.Image != newer {
						t.Errorf("the volume was deleted by %s, with the properties %v. The PV: %v, in the storage: %t", r.Image, r.Request.Properties, w.PVOf(claim) != nil, w.Storage[string(claim.UID)])
					}
				}
				for _, e := range w.Events.About("PersistentVolume/"+contract.PVName(string(claim.UID)), "RevisionMissing") {
					t.Log(e)
				}
			})
		})
	}
}

// An image asks a label of its pod for the zone whose storage it uses: Kubernetes copies it from the node
// (PodTopologyLabels). The nodes of zone a no longer exist, and the config is for zone b.
func TestADeleteIsNotSentToTheStorageOfAnotherZone(t *testing.T) {
	const byZone = "spec: {containers: [{name: provisioner, env: [{name: ZONE, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['topology.kubernetes.io/zone']\"}}}]}]}"
	inWorld(t, func(w *world) {
		inZone := func(name, zone string) {
			node := w.CreateNode(name)
			fakecluster.Update(w, fakecluster.Admin, node, func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = zone })
		}
		inZone("node-a", "a")
		w.SetUpGold(fakecluster.Works, "pod-template", byZone, "node-selector", "topology.kubernetes.io/zone=a")
		w.Start()
		claim := w.provisioned("data")
		w.UpdateConfig("node-selector", "topology.kubernetes.io/zone=b")
		inZone("node-b", "b")
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-a"))
		w.Advance(10 * time.Second)
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		for _, made := range w.CreatedJobs(contract.Delete) {
			spec := made.Now.(*batchv1.Job).Spec.Template.Spec
			if zone := spec.NodeSelector[corev1.LabelTopologyZone]; zone != "a" {
				t.Errorf("the volume of zone a is deleted in zone %s; its PV exists: %t", zone, w.PVOf(claim) != nil)
			}
		}
	})
}
