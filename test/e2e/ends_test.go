//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The program of the config does not exist. Nothing was made, so the corrected config is used at
// once: an undo could not start either.
func TestACorrectedConfigIsUsedAtOnceAfterAStartError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "start-error")
	class, cm := w.service(scripted("", nil, func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Command = []string{"/no/such/program"}
	}))
	claim := w.claim(class, "data")
	w.event(claim, "ProvisioningFailed", "StartError", "/no/such/program", "Remedy: ", "attempt 1")
	w.edit(cm, scripted(deletes+offer, nil))
	w.bound(claim)
	equal(t, "undos", len(w.jobs(claim, "delete")), 0)
	equal(t, "attempts", w.look(claim).Annotations["flex-provisioner.io/attempts"], "1")
	w.deleteClaim(claim)
	w.vanished(claim)
}

// A mesh adds a container to the pod that never ends, as a second container or as an init container
// that is restarted. The run ends with its own container, and the rest is ended.
func TestARunEndsBesideASidecar(t *testing.T) {
	t.Parallel()
	proxy := corev1.Container{
		Name: "istio-proxy", Image: bashImage, Command: []string{"/bin/sh", "-c", "sleep 3600"},
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
	for name, add := range map[string]func(*corev1.PodTemplateSpec){
		"second": func(p *corev1.PodTemplateSpec) { p.Spec.Containers = append(p.Spec.Containers, proxy) },
		"native": func(p *corev1.PodTemplateSpec) {
			native := proxy
			native.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			p.Spec.InitContainers = append(p.Spec.InitContainers, native)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "beside-"+name)
			class, _ := w.service(scripted(deletes+offer, nil, add))
			began := time.Now()
			claim := w.claim(class, "data")
			w.bound(claim)
			job := w.onlyJob(claim, "provision")
			w.eventually(toBind, "its pod to end", func(ctx context.Context) error {
				pods, err := podsOf(ctx, job)
				if err == nil && len(pods) == 1 && pods[0].Status.Phase != corev1.PodFailed && pods[0].Status.Phase != corev1.PodSucceeded {
					err = fmt.Errorf("its phase is %s", pods[0].Status.Phase)
				}
				return err
			})
			w.deleteClaim(claim)
			w.vanished(claim)
			if took := time.Since(began); took > 5*time.Minute {
				t.Errorf("it took %s, as long as the deadlines of its pods", took)
			}
		})
	}
}

// The ServiceAccount says that pods get no token of it. The container needs one.
func TestAContainerHasItsTokenWhateverItsServiceAccountSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "token")
	_, err := kube.CoreV1().ServiceAccounts(ownNamespace).Create(w.ctx(), &corev1.ServiceAccount{
		ObjectMeta:                   metav1.ObjectMeta{Name: w.ns, Labels: map[string]string{"flex-provisioner.io/provisioner": "true"}},
		AutomountServiceAccountToken: new(false),
	}, metav1.CreateOptions{})
	w.must(err, "create the ServiceAccount")
	w.remove(func() {
		w.gone(kube.CoreV1().ServiceAccounts(ownNamespace).Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "the ServiceAccount")
	})
	_, err = kube.RbacV1().ClusterRoleBindings().Create(w.ctx(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "flex-provisioner-volumes"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ownNamespace, Name: w.ns}},
	}, metav1.CreateOptions{})
	w.must(err, "bind the ServiceAccount")
	w.remove(func() {
		w.gone(kube.RbacV1().ClusterRoleBindings().Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "the ClusterRoleBinding")
	})
	const writes = `kubectl patch --local -f /etc/flex/pv.json --type=merge -o json -p '{"spec":{"nfs":{"server":"10.250.0.9","path":"/exports/'$FLEX_PV_NAME'"}}}' |
kubectl create --raw '/api/v1/persistentvolumes?fieldValidation=Strict' -f -`
	class, _ := w.service(scripted(deletes+writes, map[string]string{"write-pv": "container", "service-account-name": w.ns}))
	claim := w.claim(class, "data")
	w.bound(claim)
	w.deleteClaim(claim)
	w.vanished(claim)
}

// onItsNode is a config of directories on the node of the volume.
func onItsNode(more map[string]string) map[string]string {
	data := map[string]string{
		"script": directoryScript(""), "verbs": "provision,delete",
		"service-account-name": "directory-provisioner", "run-on": "selected-node", "base-dir": volumesFolder,
		"pod-template": `
spec:
  securityContext: {runAsNonRoot: false, runAsUser: 0, runAsGroup: 0}
  containers:
    - name: provisioner
      securityContext:
        capabilities: {drop: [ALL], add: [DAC_OVERRIDE, FOWNER]}
      volumeMounts:
        - {name: volumes, mountPath: ` + volumesFolder + `}
  volumes:
    - name: volumes
      hostPath: {path: ` + volumesFolder + `, type: DirectoryOrCreate}
`,
	}
	maps.Copy(data, more)
	return data
}

// Only node1 has the storage, and the pod prefers node2. The claim returns at once, no Job is
// created for it, and its event says how the scheduler can know.
func TestAClaimWhoseNodeHasNotTheStorageReturnsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "no-storage")
	w.class(w.ns, firstConsumer, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.config(nodeNamespace, w.ns, onItsNode(map[string]string{"node-selector": w.nodeLabel() + "=yes"}))
	w.open("node1")
	claim := w.claim(w.ns, "data")
	pod := shell("user", "", "echo it is here", claim)
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100, Preference: corev1.NodeSelectorTerm{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node2"}}},
		}}},
	}}
	w.pod(pod)
	w.event(claim, "Rescheduling", "the selected node node2 cannot run a Job", "allowedTopologies")
	equal(t, "Jobs for a node that takes none", len(w.jobs(claim, "provision")), 0)
	w.open("node2")
	w.bound(claim)
	equal(t, "what the pod said", w.output("user"), "it is here\n")
	w.deletePods("user")
	w.deleteClaim(claim)
	w.vanished(claim)
}

// freeCPU is how much CPU of a node no pod has requested, in thousandths.
func (w *world) freeCPU(node string) int64 {
	w.t.Helper()
	found, err := kube.CoreV1().Nodes().Get(w.ctx(), node, metav1.GetOptions{})
	w.must(err, "look at the node "+node)
	pods, err := kube.CoreV1().Pods("").List(w.ctx(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node + ",status.phase!=Succeeded,status.phase!=Failed"})
	w.must(err, "list the pods of the node "+node)
	free := found.Status.Allocatable.Cpu().MilliValue()
	for _, pod := range pods.Items {
		for _, c := range pod.Spec.Containers {
			free -= c.Resources.Requests.Cpu().MilliValue()
		}
	}
	return free
}

// The pod fills its node but for 4m, and waits for a volume there, whose provisioning pod must run
// there, too. It is not parallel: no other test finds the node full.
func TestAPodThatFillsItsNodeGetsItsVolume(t *testing.T) { //nolint:paralleltest // it fills a node
	w := newWorld(t, "fills")
	claim := w.claim(directoryClass, "data")
	pod := shell("fills", "node2", "echo it is here", claim)
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(w.freeCPU("node2")-4, resource.DecimalSI)}
	w.pod(pod)
	equal(t, "what the pod said", w.output("fills"), "it is here\n")
	w.deletePods("fills")
	w.deleteClaim(claim)
	w.vanished(claim)
}

// The node of the volume takes only pods that tolerate its taint, and is cordoned before the volume
// is deleted. It is not parallel: no other test finds the node so.
func TestARunToleratesTheTaintOfItsNode(t *testing.T) { //nolint:paralleltest // it taints a node
	w := newWorld(t, "tainted")
	nodes := kube.CoreV1().Nodes()
	change := func(spec string) {
		_, err := nodes.Patch(w.ctx(), "node2", types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
		w.must(err, "change the node node2")
	}
	w.remove(func() { change(`{"taints":null,"unschedulable":null}`) })
	change(`{"taints":[{"key":"dedicated","value":"storage","effect":"NoSchedule"}]}`)
	claim := w.claim(directoryClass, "data")
	pod := shell("tolerant", "node2", "echo it is here", claim)
	pod.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	w.pod(pod)
	equal(t, "what the pod said", w.output("tolerant"), "it is here\n")
	w.deletePods("tolerant")
	change(`{"unschedulable":true}`)
	w.eventually(toBind, "the taint of the cordoned node", func(ctx context.Context) error {
		node, err := nodes.Get(ctx, "node2", metav1.GetOptions{})
		if err == nil && len(node.Spec.Taints) < 2 {
			err = errors.New("it has only its own")
		}
		return err
	})
	w.deleteClaim(claim)
	w.vanished(claim)
}
