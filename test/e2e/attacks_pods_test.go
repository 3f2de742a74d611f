//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// confirmGate is what every provisioning pod is created with.
const confirmGate = "flex-provisioner.io/confirm"

// provisioningPod is a pod as the dispatcher launches it for a class on a node's directories.
func provisioningPod(change ...func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"flex-provisioner.io/verb": "provision"}},
		Spec:       shell("attack", "", "true", nil).Spec,
	}
	mountsDirectories(&template)
	harden(&template.Spec)
	template.Spec.ServiceAccountName = "directory-provisioner"
	template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: confirmGate}}
	for _, c := range change {
		c(&template)
	}
	return template
}

// harden gives a pod what Pod Security "restricted" and the policy of flex-provisioner-node ask
// for.
func harden(spec *corev1.PodSpec) {
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: new(true)}
	}
	spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	container := &spec.Containers[0]
	if container.SecurityContext == nil {
		container.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
	}
	container.SecurityContext.AllowPrivilegeEscalation = new(false)
}

func createPod(change ...func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	return createPodIn(nodeNamespace, change...)
}

func createPodIn(namespace string, change ...func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	return createPodOf(namespace, controlledBy("batch/v1", "Job", attackUID), change...)
}

// createPodOf tries to create the pod of an owner.
func createPodOf(namespace string, owners []metav1.OwnerReference, change ...func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	template := provisioningPod(change...)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.OwnerReferences = "attack", owners
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// controlledBy is the owner of a pod that a controller has created.
func controlledBy(version, kind string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "attack", UID: uid, Controller: new(true)}}
}

func createJob(change ...func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	return createJobIn(nodeNamespace, change...)
}

func createJobIn(namespace string, change ...func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "attack"}, Spec: batchv1.JobSpec{Template: provisioningPod(change...)}}
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.BatchV1().Jobs(namespace).Create(ctx, job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// Whoever creates a Job or a pod in the namespace that may mount a node's directories, with a
// stolen token of the dispatcher too, gets no more of the node than the configs that are shipped.
func TestPodOfANodesDirectoriesGetsNoMoreOfItsNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "escape")
	w.run(nodePodAttacks(), true)
}

// nodePodAttacks returns the attacks by Jobs and pods on the nodes. They change nothing: every
// policy judges a dry run as well.
func nodePodAttacks() []attack {
	privileged := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	}
	bare := func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].SecurityContext = nil }
	unconfined := func(p *corev1.PodTemplateSpec) { p.Spec.SecurityContext.SeccompProfile = nil }
	admin := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	}
	mounts := func(path string) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) { p.Spec.Volumes[0].HostPath.Path = path }
	}
	processes := func(p *corev1.PodTemplateSpec) { p.Spec.HostPID = true }
	network := func(p *corev1.PodTemplateSpec) { p.Spec.HostNetwork = true }
	kernel := func(p *corev1.PodTemplateSpec) {
		p.Spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "kernel.msgmax", Value: "65536"}}
	}
	user := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{User: "system_u"}
	}
	metadata := func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254", Port: intstr.FromInt32(80)},
		}}
	}
	const path = "may mount no hostPath but"
	return []attack{
		{"a privileged Job", theDispatcher, createJob(privileged), "may not be privileged", passes},
		{"its pod", jobController, createPod(privileged), "may not be privileged", passes},
		{"a container without a security context", theDispatcher, createJob(bare), "must set allowPrivilegeEscalation to false", passes},
		{"no seccomp profile", theDispatcher, createJob(unconfined), "seccomp profile", passes},
		{"CAP_NET_ADMIN", theDispatcher, createJob(admin), "may add only DAC_OVERRIDE", passes},
		{"hostPath /", theDispatcher, createJob(mounts("/")), path, passes},
		{"hostPath below a link", theDispatcher, createJob(mounts(volumesFolder + "/link/etc")), path, passes},
		{"its pod", jobController, createPod(mounts(volumesFolder + "/link")), path, passes},
		{"the node's processes", theDispatcher, createJob(processes), "hostPID", passes},
		{"the node's network", theDispatcher, createJob(network), "hostNetwork", passes},
		{"a sysctl that is not safe", theDispatcher, createJob(kernel), "no other sysctl", passes},
		{"another SELinux user", theDispatcher, createJob(user), "no SELinux user", passes},
		{"a probe of another host, from the node's network", theDispatcher, createJob(metadata), "may name no host", passes},
		{"what the shipped configs launch", theDispatcher, createJob(), "", passes},
		{"its pod", jobController, createPod(), "", passes},
	}
}

// A provisioning pod that was created without its gate, as where a webhook strips it, would run
// unconfirmed. It is refused.
func TestProvisioningPodWithoutItsGateIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ungated")
	w.run(gateAttacks(), true)
}

// gateAttacks returns the attempts to run without a gate. They change nothing.
func gateAttacks() []attack {
	const refusal = "must be created with the scheduling gate " + confirmGate
	ungated := func(p *corev1.PodTemplateSpec) { p.Spec.SchedulingGates = nil }
	other := func(p *corev1.PodTemplateSpec) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
	}
	unlabelled := func(p *corev1.PodTemplateSpec) { p.Labels = nil }
	anonymous := func(p *corev1.PodTemplateSpec) { p.Spec.ServiceAccountName = "default" }
	return []attack{
		{"a pod without a gate", jobController, createPod(ungated), refusal, passes},
		{"with another gate", jobController, createPod(other), refusal, passes},
		{"without its label", jobController, createPod(ungated, unlabelled), refusal, passes},
		{"without an account of its own", jobController, createPod(ungated, anonymous), refusal, passes},
		{"with its gate", jobController, createPod(), "", passes},
		{"a pod that provisions nothing", jobController, createPod(ungated, unlabelled, anonymous), "", passes},
	}
}

// A pod says by its labels and annotations which claims it serves, of any namespace and class, and
// no other run for them begins before it has ended. And a Job finds its pods by a label, so that a
// pod of others could complete the Job of a run that has not begun. So whoever may create pods in a
// config namespace creates none that says so, and changes none.
func TestNoPodServesClaimsThatItsCreatorChooses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "serve")
	w.run(w.servingAttacks(), true)
}

// servingAttacks makes the pod of a record and a pod of others, and returns the attempts to create
// one that serves claims, and to change those. They are dry runs.
func (w *world) servingAttacks() []attack {
	w.t.Helper()
	own, others := w.podOfARecord(), w.podOfOthers()
	const creates, changes = "only the Job controller, for a Job, creates a pod with", "are not added to a pod, changed or removed"
	const domain, uids, claimUID = "flex-provisioner.io/", recordUIDs, "flex-provisioner.io/claim-uid"
	serving := func(p *corev1.PodTemplateSpec) {
		p.Labels = map[string]string{managedBy: "flex-dispatcher", domain + "provisioner": "flex-provisioner.io", claimUID: attackUID, uids: "b3c1"}
		p.Annotations = map[string]string{uids: attackUID + "," + victimUID}
	}
	marked := func(labels, annotations map[string]string) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) { p.Labels, p.Annotations = labels, annotations }
	}
	audits := marked(map[string]string{managedBy: "flex-dispatcher-audit", claimUID: attackUID, domain + "verb": "list"}, nil)
	ofJob := func(label, value string) func(*corev1.PodTemplateSpec) {
		return marked(map[string]string{label: value}, nil)
	}
	controllers := rest.ImpersonationConfig{UserName: "system:kube-controller-manager", Groups: []string{"system:masters", "system:authenticated"}}
	ofReplicaSet := controlledBy("apps/v1", "ReplicaSet", attackUID)
	unmarked := createPodOf(nodeNamespace, nil, marked(map[string]string{managedBy: "Helm"}, map[string]string{"example.com/scrape": "true"}))
	return []attack{
		{"a pod that serves others' claims", clusterAdmin, createPodOf(nodeNamespace, nil, serving), creates, passes},
		{"the same, with a Job as its owner", clusterAdmin, createPod(serving), creates, passes},
		{"the same, of no Job", jobController, createPodOf(nodeNamespace, nil, serving), creates, passes},
		{"the same, of a ReplicaSet, by all controllers in one account", controllers, createPodOf(nodeNamespace, ofReplicaSet, serving), creates, passes},
		{"a pod that is the dispatcher's by its label", clusterAdmin, createPodOf(nodeNamespace, nil, marked(map[string]string{managedBy: "flex-dispatcher"}, nil)), creates, passes},
		{"a pod with a label for a claim", clusterAdmin, createPodOf(nodeNamespace, nil, marked(map[string]string{recordMember: ""}, nil)), creates, passes},
		{"a pod with a request", clusterAdmin, createPodOf(nodeNamespace, nil, marked(nil, map[string]string{domain + "request": "{}"})), creates, passes},
		{"an audit's pod by hand", clusterAdmin, createPodOf(nodeNamespace, nil, audits), creates, passes},
		{"a pod that a Job adopts", clusterAdmin, createPodOf(nodeNamespace, nil, ofJob(batchv1.ControllerUidLabel, victimUID)), creates, passes},
		{"the same, by the label of older Jobs", clusterAdmin, createPodOf(nodeNamespace, nil, ofJob("controller-uid", victimUID)), creates, passes},
		{"a pod of a Job by its name", clusterAdmin, createPodOf(nodeNamespace, nil, ofJob(batchv1.JobNameLabel, "delete-"+victimUID+"-1")), creates, passes},
		{"a pod that another Job adopts once its own is deleted", jobController, createPod(ofJob(batchv1.ControllerUidLabel, victimUID)), creates, passes},
		{"another Job on a pod of others", clusterAdmin, patchesPod(others, `{"metadata":{"labels":{"`+batchv1.ControllerUidLabel+`":"`+victimUID+`"}}}`), changes, passes},
		{"no Job on a pod", clusterAdmin, patchesPod(own, `{"metadata":{"labels":{"`+batchv1.ControllerUidLabel+`":null}}}`), changes, passes},
		{"other claims on a pod", clusterAdmin, patchesPod(own, `{"metadata":{"annotations":{"`+uids+`":"`+victimUID+`"}}}`), changes, passes},
		{"no verb on a pod", clusterAdmin, patchesPod(own, `{"metadata":{"labels":{"`+domain+`verb":null}}}`), changes, passes},
		{"the dispatcher's label on a pod", clusterAdmin, patchesPod(own, `{"metadata":{"labels":{"`+managedBy+`":"flex-dispatcher"}}}`), changes, passes},
		{"the same on a pod of others", clusterAdmin, patchesPod(others, `{"metadata":{"labels":{"`+managedBy+`":"flex-dispatcher"}}}`), changes, passes},
		{"a claim on a pod of others", clusterAdmin, patchesPod(others, `{"metadata":{"labels":{"`+claimUID+`":"`+victimUID+`"}}}`), changes, passes},
		{"what the dispatcher launches", jobController, createPod(serving), "", passes},
		{"the same, by all controllers in one account", controllers, createPod(serving), "", passes},
		{"an audit's pod", jobController, createPod(audits), "", passes},
		{"the pod of a Job of others", jobController, createPod(marked(map[string]string{batchv1.ControllerUidLabel: attackUID, batchv1.JobNameLabel: "attack"}, nil)), "", passes},
		{"a pod of others", clusterAdmin, unmarked, "", passes},
		{"a mirror pod of others", kubelet("node2"), w.createMirrorPod("node2", marked(nil, nil)), "no static pod runs in the namespaces", passes},
		{"a label of others on a pod", clusterAdmin, patchesPod(own, `{"metadata":{"labels":{"kueue.x-k8s.io/podset":"main"}}}`), "", passes},
		{"a pod is confirmed", theDispatcher, patchesPod(own, `{"spec":{"$setElementOrder/schedulingGates":[],"schedulingGates":[{"$patch":"delete","name":"`+confirmGate+`"}]}}`), "", passes},
		{"its sidecars are ended", theDispatcher, patchesPod(own, `{"spec":{"activeDeadlineSeconds":1}}`), "", passes},
		{"it is released", theDispatcher, patchesPod(own, `{"metadata":{"$deleteFromPrimitiveList/finalizers":["`+recordName+`"]}}`), "", passes},
		{"it is released in an emergency", clusterAdmin, patchesPod(own, `{"metadata":{"finalizers":null}}`), "", passes},
		{"others' own label on a pod of theirs", clusterAdmin, patchesPod(others, `{"metadata":{"labels":{"`+managedBy+`":"Helm"}}}`), "", passes},
	}
}

// podOfARecord lets the Job controller create a pod for a Job of the dispatcher, until the test's
// end, and returns its name. It is gated, and no dispatcher sees it without the label by which its
// pods are found.
func (w *world) podOfARecord() string {
	w.t.Helper()
	name := w.keepJob("serving", func(job *batchv1.Job) {
		job.Labels, job.Spec.Suspend = map[string]string{recordMember: ""}, nil
		job.Spec.Template.Labels = map[string]string{"flex-provisioner.io/verb": "provision"}
		job.Spec.Template.Annotations = map[string]string{recordUIDs: attackUID}
		job.Spec.Template.Finalizers = []string{recordName}
	})
	var pod string
	w.eventually(toBind, "the pod of the Job "+name, func(ctx context.Context) error {
		list, err := kube.CoreV1().Pods(nodeNamespace).List(ctx, labelled(batchv1.JobNameLabel+"="+name))
		if err == nil && len(list.Items) == 0 {
			err = errors.New("it has none")
		}
		if err == nil {
			pod = list.Items[0].Name
		}
		return err
	})
	w.remove(func() {
		_, err := kube.CoreV1().Pods(nodeNamespace).Patch(w.ctx(), pod, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		w.gone(err, "the finalizers of the pod "+pod)
	})
	return pod
}

// podOfOthers makes a pod that never starts, until the test's end, and returns its name.
func (w *world) podOfOthers() string {
	w.t.Helper()
	template := provisioningPod(func(p *corev1.PodTemplateSpec) {
		p.Labels, p.Spec.ServiceAccountName = nil, "default"
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "e2e.example.com/never"}}
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-others"}, Spec: template.Spec}
	_, err := kube.CoreV1().Pods(nodeNamespace).Create(w.ctx(), pod, metav1.CreateOptions{})
	w.must(err, "create a pod of others")
	w.remove(func() {
		w.gone(kube.CoreV1().Pods(nodeNamespace).Delete(w.ctx(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}), "the pod "+pod.Name)
	})
	return pod.Name
}

// createMirrorPod tries to create the mirror pod of a static pod of a node, which refers to no
// other object.
func (w *world) createMirrorPod(node string, change func(*corev1.PodTemplateSpec)) func(context.Context, kubernetes.Interface) error {
	w.t.Helper()
	of, err := kube.CoreV1().Nodes().Get(w.ctx(), node, metav1.GetOptions{})
	w.must(err, "look at the node "+node)
	owners := controlledBy("v1", "Node", of.UID)
	owners[0].Name = node
	return createPodOf(nodeNamespace, owners, change, func(p *corev1.PodTemplateSpec) {
		p.Spec.NodeName, p.Spec.ServiceAccountName, p.Spec.SchedulingGates = node, "", nil
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[corev1.MirrorPodAnnotationKey] = "attack"
	})
}

// patchesPod tries a strategic merge patch of a pod.
func patchesPod(name, patch string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Pods(nodeNamespace).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}
