package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

const (
	oldScheduling = `spec:
  resourceClaims: [{name: nic, resourceClaimName: nic}]
  tolerations: [{key: old, operator: Exists}]
  nodeSelector: {old: "true"}
  priorityClassName: old
  imagePullSecrets: [{name: old}]
  containers:
    - name: provisioner
      resources: {requests: {cpu: 2}, limits: {cpu: 4}, claims: [{name: nic}]}
      env: [{name: KEPT, value: "1"}]
`
	newScheduling = `spec:
  tolerations: [{key: new, operator: Exists}]
  priorityClassName: new
  imagePullSecrets: [{name: new}]
  containers: [{name: provisioner, resources: {limits: {cpu: 1}}}]
`
)

// A volume stays with the revision that made it. In a cluster that has other nodes by now, other
// taints or less room it would never be deleted.
func TestADeleteUnderAnOlderRevisionIsScheduledAsTheConfigSaysToday(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "pod-template", oldScheduling, "node-selector", "storage=old")
		w.Start()
		claim := w.provisioned("data")
		w.UpdateConfig("pod-template", newScheduling, "node-selector", "storage=new")
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		job := w.CreatedJobs(contract.Delete)[0].Now.(*batchv1.Job)
		if first := w.CreatedJobs(contract.Provision)[0].Now.(*batchv1.Job); job.Annotations[contract.AnnRevision] != first.Annotations[contract.AnnRevision] {
			w.T.Error("it runs under another revision")
		}
		spec := job.Spec.Template.Spec
		w.MustScheduleAs(spec, "new", "old new", "kubernetes.io/os=linux old=true storage=old", "0 1")
		if claims := spec.Containers[0].Resources.Claims; len(claims) != 1 || claims[0].Name != "nic" {
			w.T.Errorf("its claims on devices are %v", claims)
		}
		if !slices.Contains(spec.Containers[0].Env, corev1.EnvVar{Name: "KEPT", Value: "1"}) {
			w.T.Error("the rest of the older template is lost")
		}
	})
}

// MustScheduleAs compares the priority, tolerations and pull secrets, the node selector, and the CPU of
// the container.
func (w *world) MustScheduleAs(spec corev1.PodSpec, priority, names, selector, cpu string) {
	w.T.Helper()
	var pulls, labels, tolerated []string
	for _, s := range spec.ImagePullSecrets {
		pulls = append(pulls, s.Name)
	}
	for key, value := range spec.NodeSelector {
		labels = append(labels, key+"="+value)
	}
	for _, t := range spec.Tolerations {
		tolerated = append(tolerated, t.Key)
	}
	slices.Sort(labels)
	r := spec.Containers[0].Resources
	if strings.Join(tolerated, " ") != names || spec.PriorityClassName != priority || strings.Join(pulls, " ") != names ||
		strings.Join(labels, " ") != selector || r.Requests.Cpu().String()+" "+r.Limits.Cpu().String() != cpu {
		w.T.Errorf("tolerates %v, priority %s, secrets %v, selector %v, CPU %v", tolerated, spec.PriorityClassName, pulls, labels, r)
	}
}

// Its pod waits for a node that no longer takes it. The corrected config is not to wait until the
// Job is given up, after its timeout.
func TestADeleteThatFindsNoNodeGoesWhereTheCorrectedConfigSays(t *testing.T) {
	on := func(node string) string {
		return "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: " +
			"[{key: kubernetes.io/hostname, operator: In, values: [" + node + "]}]}]}}}}"
	}
	inWorld(t, func(w *world) {
		w.CreateNode("node-1")
		w.SetUpGold(fakecluster.Works, "pod-template", on("node-1"))
		w.Start()
		claim := w.provisioned("data")
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-1"))
		w.CreateNode("other")
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(2 * time.Minute)
		if w.Empty() {
			w.T.Fatal("it found a node")
		}
		w.UpdateConfig("pod-template", on("other"))
		w.Until("nothing is left", 30*time.Second, w.Empty)
	})
}

// A volume of before that is still there. The attacker deletes a claim of its own on it, and its node
// has the label that selected the nodes then.
func TestADeleteGoesOnlyToTheNodesThatTheConfigIsolatesByNow(t *testing.T) {
	const isolated = "node-restriction.kubernetes.io/storage"
	inWorld(t, func(w *world) {
		for name, label := range map[string]string{"safe": isolated, "attacker": "storage"} {
			fakecluster.Update(w, fakecluster.Admin, w.CreateNode(name), func(n *corev1.Node) { n.Labels[label] = "yes" })
		}
		w.SetUpGold(fakecluster.Works, "node-selector", "storage=yes")
		w.Start()
		claim := w.provisioned("data")
		w.UpdateConfig("node-selector", isolated+"=yes")
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", 30*time.Second, w.Empty)
		for _, run := range w.Runs {
			if selector := run.Pod.Spec.NodeSelector; run.Verb == contract.Delete && selector[isolated] != "yes" {
				w.T.Errorf("the delete run goes to nodes with %v", selector)
			}
		}
	})
}

// retryNow asks for the next run, as an administrator does who has repaired something outside of the
// cluster.
func (w *world) retryNow(verb contract.Verb) {
	all := w.CreatedJobs(verb)
	job := all[len(all)-1].Now.(*batchv1.Job)
	fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*batchv1.Job](w, job.Namespace, job.Name), func(job *batchv1.Job) { fakecluster.Annotate(job, jobs.AnnRetry, "now") })
}

func TestAnAdministratorAsksForARetryNow(t *testing.T) {
	for name, keys := range map[string][]string{"its pause is ten minutes": nil, "it was the last attempt": {"max-attempts", "1"}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(fakecluster.Fails(65, "no such pool")), keys...)
				w.Start()
				w.CreateClaim("data")
				w.Advance(2 * time.Minute)
				before := len(w.CreatedJobs(""))
				w.retryNow(contract.Provision)
				w.Advance(2 * time.Minute)
				if n := len(w.CreatedJobs("")) - before; n != 1 {
					w.T.Errorf("%d runs follow", n) // that one is not the annotated Job's
				}
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
				w.retryNow(contract.Provision)
				w.Until("the claim is bound", 10*time.Second, w.IsBound("data"))
			})
		})
	}
}

func TestAnAdministratorAsksForADeleteNow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.provisioned("data")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Fails(78, "no route to the storage")}
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(2 * time.Minute)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.retryNow(contract.Delete)
		w.Until("nothing is left", 10*time.Second, w.Empty)
	})
}

// Its user may not get what the administrator has changed.
func TestAClaimSaysThatTheLastGoodRevisionServesIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.provisioned("first")
		w.UpdateConfig("timeout", "soon")
		w.Advance(time.Second)
		w.CreateClaim("data")
		w.Until("data is bound", time.Minute, w.IsBound("data"))
		for _, about := range []string{onData, "ConfigMap/gold"} {
			w.MustEmitSome(about, "InvalidConfig", "last valid revision", "stays in use")
		}
		w.MustEmit("PersistentVolumeClaim/first", "InvalidConfig", 0)
	})
}

// Its runs reach the storage by the agent of their node. The agent of another node knows no such volume:
// it was deleted already, as far as that one can say.
func TestADeleteIsNotSentToTheNodesOfAnotherStorage(t *testing.T) {
	on := func(node string) string {
		return "spec: {containers: [{name: provisioner, env: [{name: AGENT, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}], " +
			"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: " +
			"[{key: kubernetes.io/hostname, operator: In, values: [" + node + "]}]}]}}}}"
	}
	inWorld(t, func(w *world) {
		w.CreateNode("node-1")
		w.CreateNode("node-2")
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete && r.Pod.Spec.NodeName != "node-1" {
				return fakecluster.Exit{} // this agent knows no such volume: deleted already
			}
			return fakecluster.Works(r)
		}, "pod-template", on("node-1"))
		w.Start()
		claim := w.provisioned("data")
		w.UpdateConfig("pod-template", on("node-2"))
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		if w.Storage[string(claim.UID)] && w.PVOf(claim) == nil {
			w.T.Errorf("LEAK: the PV has gone, and the volume is in the storage; LeftBehind events %d", len(w.Events.About("", "LeftBehind")))
		}
	})
}

// A run has failed on a node that is taken out of the config then. It is undone there.
func TestAClaimWhoseNodeIsTakenOutOfTheConfigReachesAnother(t *testing.T) {
	const without = "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" +
		"{matchExpressions: [{key: kubernetes.io/hostname, operator: NotIn, values: [node-1]}]}]}}}}"
	inWorld(t, func(w *world) {
		w.chosenClass(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Provision && r.Request.SelectedNode == "node-1" {
				return fakecluster.Halfway(75)(r)
			}
			return fakecluster.Works(r)
		}, []string{"node-1", "node-2"}, "run-on", "selected-node")
		w.Start()
		w.CreateClaim("data")
		w.Until("a run has failed", time.Minute, func() bool { return len(w.Runs) > 0 })
		w.Advance(5 * time.Second)
		w.UpdateConfig("pod-template", without)
		w.Advance(3 * time.Hour)
		if !w.IsBound("data")() {
			w.T.Errorf("the claim is not bound after three hours: %v", w.where())
		}
	})
}
