package run_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// onNodes is a lab whose class gold has its volumes on nodes.
type onNodes struct {
	*lab
	reads sync.Mutex // of logs, one at a time
	mu    sync.Mutex // of what follows
	// has is what each node lists, fails which nodes fail.
	has   map[string][]string
	fails map[string]bool
	// names are those of the Jobs by the node that they went to, atWork those that run, most how many
	// ran at a time.
	names  map[string][]string
	atWork map[string]bool
	most   int
}

// inLabOfNodes runs a test with a class on nodes, in which each list takes five seconds.
func inLabOfNodes(t *testing.T, keys map[string]string, test func(*onNodes), more ...runtime.Object) {
	t.Helper()
	data := map[string]string{"run-on": "selected-node"}
	maps.Copy(data, keys)
	delayed := class("gold")
	delayed.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	inLab(t, data, func(l *lab) {
		n := &onNodes{lab: l, has: map[string][]string{}, fails: map[string]bool{}, names: map[string][]string{}, atWork: map[string]bool{}}
		if err := l.client.Tracker().Update(storagev1.SchemeGroupVersion.WithResource("storageclasses"), delayed, ""); err != nil {
			t.Fatal(err)
		}
		l.Client = logsByPod{l.client, n}
		l.started = func(job *batchv1.Job) { l.pod(job, func(*corev1.Pod) {}) }
		l.ungated = n.begin
		test(n)
	}, more...)
}

// nodeOf returns the node that a pod must go to.
func nodeOf(spec corev1.PodSpec) string {
	for _, term := range spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, r := range term.MatchFields {
			return r.Values[0]
		}
	}
	return ""
}

func (n *onNodes) begin(pod *corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	node := nodeOf(pod.Spec)
	n.names[node] = append(n.names[node], pod.Labels[batchv1.JobNameLabel])
	n.atWork[pod.Name] = true
	n.most = max(n.most, len(n.atWork))
	pod.Status.Phase = corev1.PodRunning
	ended := pod.DeepCopy()
	time.AfterFunc(5*time.Second, func() { n.end(ended, node) })
}

func (n *onNodes) end(pod *corev1.Pod, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.atWork, pod.Name)
	exit := &corev1.ContainerStateTerminated{Message: contract.EncodeListEnd(len(n.has[node])), FinishedAt: metav1.Now()}
	pod.Status.Phase = corev1.PodSucceeded
	if n.fails[node] {
		exit.ExitCode, exit.Message, pod.Status.Phase = 75, "the storage is not mounted", corev1.PodFailed
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.Container, State: corev1.ContainerState{Terminated: exit}}}
	_ = n.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace) // its Job may have been deleted
}

// logsByPod is a client to which each pod has a log of its own: the fake clientset does not say of which
// pod one is read.
type logsByPod struct {
	kubernetes.Interface
	of *onNodes
}

type coreWithLogs struct {
	coreclient.CoreV1Interface
	of *onNodes
}

type podsWithLogs struct {
	coreclient.PodInterface
	of *onNodes
}

func (c logsByPod) CoreV1() coreclient.CoreV1Interface {
	return coreWithLogs{c.Interface.CoreV1(), c.of}
}

func (c coreWithLogs) Pods(ns string) coreclient.PodInterface {
	return podsWithLogs{c.CoreV1Interface.Pods(ns), c.of}
}

func (p podsWithLogs) GetLogs(name string, opts *corev1.PodLogOptions) *rest.Request {
	pod, err := p.Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		p.of.t.Error(err)
		return nil
	}
	p.of.reads.Lock()
	defer p.of.reads.Unlock()
	p.of.mu.Lock()
	log := strings.Join(p.of.has[nodeOf(pod.Spec)], "")
	p.of.mu.Unlock() // a reaction of the clientset, which is locked meanwhile, waits for it
	p.of.lab.mu.Lock()
	p.of.log = log
	p.of.lab.mu.Unlock()
	return p.PodInterface.GetLogs(name, opts)
}

// nodeCalled is a Ready node whose hostname is not its name.
func nodeCalled(name string, changes ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: "host-of-" + name}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(node)
	}
	return node
}

func notReady(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionUnknown }

// pvOn is a PV of the class gold on a node, which it names by its hostname.
func pvOn(node, uid string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + uid, Annotations: map[string]string{contract.AnnClaimUID: uid}}}
	pv.Spec.StorageClassName, pv.Spec.Local = "gold", &corev1.LocalVolumeSource{Path: "/srv/volumes/" + pv.Name}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"host-of-" + node}}},
	}}}}
	return pv
}

// uidNumber is the UID of one of many claims.
func uidNumber(i int) string { return fmt.Sprintf("6f0c3b1e-2d4a-4c8e-9a57-%012d", i) }

// lineOf is what a node lists of a volume of the class gold.
func lineOf(uid string) string {
	return strings.Replace(volumeLine(uid, "pvc-"+uid, clusterID), `"size"`, `"storageClass":"gold","used":7,"size"`, 1)
}
