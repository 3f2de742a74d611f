package run_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

func TestAnAuditListsEachNodeAndDeletesEachOrphanOnItsNode(t *testing.T) {
	tainted := nodeCalled("node-2", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "example.com/storage", Effect: corev1.TaintEffectNoSchedule}}
	})
	inLabOfNodes(t, nil, func(n *onNodes) {
		n.has = map[string][]string{
			"node-1": {lineOf(uidNumber(1)), lineOf(uidNumber(3))}, "node-2": {lineOf(uidNumber(2))},
		}
		got, err := n.Look(n.t.Context(), run.Storages{All: true})
		if err != nil || len(got.Faults)+len(got.Notes) > 0 || len(got.Found) != 2 {
			n.t.Fatalf("found %+v, faults %v, notes %v, error %v", got.Found, got.Faults, got.Notes, err)
		}
		for i, f := range got.Found {
			want := fmt.Sprintf("volume pvc-%s on the node node-%d", uidNumber(i+1), i+1)
			if f.Kind != audit.VolumeLeft || f.Object != want || f.Fix != "kubectl flex audit --storage=gold --fix=pvc-"+uidNumber(i+1)+"  # unless it is kept on purpose" {
				n.t.Errorf("found %+v, want %s", f, want)
			}
		}
		if used := audit.Usages(got.State); len(used) != 1 || used[0].PV != "pvc-"+uidNumber(3) || used[0].Used != 7 {
			n.t.Errorf("the usages are %+v", used)
		}
		n.mustLeaveNoJob()

		var went []string
		n.ungated = func(pod *corev1.Pod) {
			request, _, err := runs.ReadRequest(pod.Annotations, pod.Labels[contract.LabelClaimUID])
			if err != nil || request.SelectedNode != nodeOf(pod.Spec) || request.SelectedTopology[corev1.LabelHostname] != "host-of-"+request.SelectedNode {
				n.t.Errorf("the request is %+v, %v", request, err)
			}
			tolerates := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "example.com/storage" })
			went = append(went, fmt.Sprint(request.UID, " on ", request.SelectedNode, ", tolerates ", tolerates))
			n.begin(pod)
		}
		said, err := n.fixing(got)
		want := []string{uidNumber(1) + " on node-1, tolerates false", uidNumber(2) + " on node-2, tolerates true"}
		if err != nil || !slices.Equal(went, want) || !strings.Contains(said, "volume pvc-"+uidNumber(2)+" on the node node-2 of the class gold, of the claim app/data, was deleted") {
			n.t.Errorf("deleted %q, said %q, %v", went, said, err)
		}
	}, nodeCalled("node-1"), tainted, pvOn("node-1", uidNumber(3)))
}

// An API server keeps the name of a Job until its pod no longer exists.
func TestAnOrphanOfTwoNodesIsDeletedOnBoth(t *testing.T) {
	inLabOfNodes(t, nil, func(n *onNodes) {
		n.has = map[string][]string{"node-1": {lineOf(uidNumber(1))}, "node-2": {lineOf(uidNumber(1))}}
		got, err := n.Look(n.t.Context(), run.Storages{All: true})
		if err != nil || len(got.Found) != 2 {
			n.t.Fatalf("found %+v, error %v", got.Found, err)
		}
		n.client.PrependReactor("delete", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
			at := action.(clienttesting.DeleteAction)
			going, err := n.client.Tracker().Get(at.GetResource(), at.GetNamespace(), at.GetName())
			if err == nil {
				going.(*batchv1.Job).DeletionTimestamp = new(metav1.Now())
				err = n.client.Tracker().Update(at.GetResource(), going, at.GetNamespace())
			}
			if err != nil {
				n.t.Error(err)
			}
			time.AfterFunc(10*time.Second, func() {
				if err := n.client.Tracker().Delete(at.GetResource(), at.GetNamespace(), at.GetName()); err != nil {
					n.t.Error(err)
				}
			})
			return true, nil, nil
		})
		said, err := n.fixing(got, "pvc-"+uidNumber(1))
		for _, node := range []string{"node-1", "node-2"} {
			if !strings.Contains(said, "on the node "+node+" of the class gold, of the claim app/data, was deleted") {
				n.t.Errorf("said %q, %v", said, err)
			}
		}
		time.Sleep(11 * time.Second) // of the bubble: the last name is free after ten
		n.mustLeaveNoJob()
	}, nodeCalled("node-1"), nodeCalled("node-2"))
}

// Nothing is known of volumes where none was looked for, and what was not looked for is named.
func TestNoPVIsTakenForMissingOnANodeThatWasNotListed(t *testing.T) {
	elsewhere := map[string]string{"node-selector": "storage=local"}
	local := func(n *corev1.Node) { n.Labels["storage"] = "local" }
	inLabOfNodes(t, elsewhere, func(n *onNodes) {
		n.fails["failed"] = true
		got, err := n.Look(n.t.Context(), run.Storages{All: true})
		if err != nil || len(got.Found) != 1 || got.Found[0].Kind != audit.VolumeMissing || got.Found[0].UID != uidNumber(1) {
			n.t.Fatalf("found %+v, error %v", got.Found, err)
		}
		said := fmt.Sprint(got.Faults)
		for _, want := range []string{
			"the node host-of-gone no longer exists, and 1 PersistentVolumes there were not looked for",
			"the node silent was not listed, and 2 PersistentVolumes there were not looked for: it is not Ready",
			"the node excluded was not listed, and 1 PersistentVolumes there were not looked for: node-selector or pod-template",
			"the node failed was not listed, and 1 PersistentVolumes there were not looked for: ", "the storage is not mounted",
		} {
			if !strings.Contains(said, want) {
				n.t.Errorf("the faults lack %q: %s", want, said)
			}
		}
		notes := []error{errors.New("class gold: the node asleep was not listed: it is not Ready. Remedy: run the audit again when it is")}
		if len(got.Faults) != 4 || fmt.Sprint(got.Notes) != fmt.Sprint(notes) {
			n.t.Errorf("faults %v, notes %v", got.Faults, got.Notes)
		}
		if listed := slices.Sorted(maps.Keys(n.names)); !slices.Equal(listed, []string{"failed", "looked"}) {
			n.t.Errorf("listed on %q", listed)
		}
	}, nodeCalled("looked", local), nodeCalled("failed", local), nodeCalled("silent", local, notReady), nodeCalled("asleep", local, notReady), nodeCalled("excluded"), nodeCalled("other"),
		pvOn("looked", uidNumber(1)), pvOn("failed", uidNumber(2)), pvOn("silent", uidNumber(3)), pvOn("silent", uidNumber(4)), pvOn("excluded", uidNumber(5)), pvOn("gone", uidNumber(6)))
}

func TestACordonedNodeIsListedOnlyIfItHasPVs(t *testing.T) {
	cordoned := func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	}
	inLabOfNodes(t, nil, func(n *onNodes) {
		n.has = map[string][]string{"used": {lineOf(uidNumber(1))}}
		got, err := n.Look(n.t.Context(), run.Storages{All: true})
		note := "class gold: the node empty was not listed: it is cordoned. Remedy: run the audit again when it is not"
		if err != nil || len(got.Faults) > 0 || len(got.Notes) != 1 || got.Notes[0].Error() != note {
			n.t.Errorf("faults %v, notes %v, error %v", got.Faults, got.Notes, err)
		}
		if listed := slices.Sorted(maps.Keys(n.names)); !slices.Equal(listed, []string{"used"}) {
			n.t.Errorf("listed on %q", listed)
		}
	}, nodeCalled("used", cordoned), nodeCalled("empty", cordoned), pvOn("used", uidNumber(1)))
}

// Where the nodes cannot be read, the class is not listed, and no other one suffers.
func TestNodesThatCannotBeReadAreAFaultOfTheirClass(t *testing.T) {
	inLabOfNodes(t, nil, func(n *onNodes) {
		n.client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("forbidden")
		})
		n.mustFail("class gold: list the nodes: forbidden")
	}, nodeCalled("node-1"), pvOn("node-1", uidNumber(1)))
}

func TestFewNodesAreListedAtATimeAndEachByAJobOfItsName(t *testing.T) {
	long := strings.Repeat("n", 60) + ".example.com"
	nodes := []runtime.Object{nodeCalled(long)}
	for i := range 9 {
		nodes = append(nodes, nodeCalled(fmt.Sprintf("node-%d", i)))
	}
	inLabOfNodes(t, nil, func(n *onNodes) {
		for range 2 {
			if got, err := n.Look(n.t.Context(), run.Storages{All: true}); err != nil || len(got.Faults) > 0 || len(got.State.OnNodes["gold"]) != 10 {
				n.t.Fatalf("faults %v, listed %v, error %v", got.Faults, got.State.OnNodes, err)
			}
			n.deletePods()
		}
		if n.most != 4 {
			n.t.Errorf("%d nodes were listed at a time", n.most)
		}
		for node, names := range n.names {
			want := "list-" + configUID + "-" + node
			if node == long {
				want = names[0]
			}
			if !slices.Equal(names, []string{want, want}) || len(want) > 57 {
				n.t.Errorf("the Jobs of the node %s are %q", node, names)
			}
		}
	}, nodes...)
}

// deletePods plays the garbage collector.
func (n *onNodes) deletePods() {
	n.t.Helper()
	if err := n.client.CoreV1().Pods("flex-provisioner").DeleteCollection(n.t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// An audit that was killed has left its Job: before it could start it, or at work. No list that began
// before this audit is read.
func TestAnAuditWaitsForTheJobOfAnotherOnANode(t *testing.T) { //nolint:tparallel // inLabOfNodes makes them parallel
	t.Parallel()
	for name, test := range map[string]struct {
		gated, stays bool
		want         time.Duration // at least
		fault        string
	}{
		"it was killed before its start": {gated: true, want: time.Minute},
		"it works":                       {want: 30 * time.Second},
		"it does not end":                {stays: true, want: 5 * time.Minute, fault: "exists already: another audit lists the node"},
	} {
		t.Run(name, func(t *testing.T) {
			inLabOfNodes(t, nil, func(n *onNodes) {
				n.Timeout, n.has["node-1"] = 5*time.Minute, []string{lineOf(uidNumber(1))}
				earlier := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "list-" + configUID + "-node-1", UID: "earlier"}}
				earlier.Spec.Template.Labels = map[string]string{jobs.LabelVerb: "list"}
				n.add(earlier)
				n.pod(earlier, func(pod *corev1.Pod) {
					if test.gated {
						pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: jobs.GateConfirm}}
					}
				})
				if !test.gated && !test.stays {
					time.AfterFunc(30*time.Second, func() { n.remove(earlier) })
				}
				begin := time.Now()
				got, err := n.Look(n.t.Context(), run.Storages{All: true})
				took := time.Since(begin)
				if err != nil || took < test.want || took > test.want+20*time.Second {
					n.t.Errorf("it took %s, error %v", took, err)
				}
				switch said := fmt.Sprint(got.Faults); {
				case test.fault == "" && (len(got.Faults) > 0 || len(got.Found) != 1):
					n.t.Errorf("found %+v, faults %s", got.Found, said)
				case !strings.Contains(said, test.fault):
					n.t.Errorf("the faults are %s", said)
				}
			}, nodeCalled("node-1"))
		})
	}
}

// remove deletes a Job as its own audit does.
func (n *onNodes) remove(job *batchv1.Job) {
	if err := n.client.BatchV1().Jobs(job.Namespace).Delete(context.Background(), job.Name, metav1.DeleteOptions{}); err != nil {
		n.t.Error(err)
	}
}

// A Job of a class whose runs went to nodes, and go anywhere now, would find nothing to delete, and say
// that it has.
func TestNoVolumeIsDeletedWhereNoRunReachesIt(t *testing.T) { //nolint:tparallel // inLabOfNodes makes them parallel
	t.Parallel()
	for name, test := range map[string]struct {
		onNodes bool
		node    string
		want    string
	}{
		"the class has left its nodes": {false, "node-1", "run-on of its class has changed"},
		"the class has gone to nodes":  {true, "", "run-on of its class has changed"},
		"the node is gone":             {true, "node-2", "the node node-2, which has listed it, no longer exists"},
	} {
		t.Run(name, func(t *testing.T) {
			in := inLabOfNodes
			if !test.onNodes {
				in = func(t *testing.T, keys map[string]string, f func(*onNodes), more ...runtime.Object) {
					t.Helper()
					inLab(t, keys, func(l *lab) { f(&onNodes{lab: l}) }, more...)
				}
			}
			in(t, nil, func(n *onNodes) {
				n.started = func(job *batchv1.Job) { n.t.Errorf("the Job %s was created", job.Name) }
				look := left(func(*audit.Volume) {})
				look.Found[0].Node = test.node
				look.State.Nodes = []*corev1.Node{nodeCalled("node-1")}
				if said, err := n.fixing(look); err == nil || !strings.Contains(said, test.want) {
					n.t.Errorf("said %q, %v", said, err)
				}
			})
		})
	}
}
