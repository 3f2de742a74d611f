//go:build e2e && everyday

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// running waits until a pod of the claim's provision is at work, and returns its Job.
func (w *world) running(claim *corev1.PersistentVolumeClaim) (job string, pod corev1.Pod) {
	w.t.Helper()
	w.eventually(toBind, "a pod of the claim to run", func(ctx context.Context) error {
		list, err := kube.CoreV1().Pods(ownNamespace).List(ctx, labelled("flex-provisioner.io/claim-uid="+string(claim.UID)))
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning {
				job, pod = p.Labels["job-name"], p
				return nil
			}
		}
		return errors.Join(err, errors.New("none does"))
	})
	return job, pod
}

// Someone, or a tool that cleans up, deletes the Job of a run, or its pod, while its container is at
// work. The claim is bound all the same, to one volume.
func TestARunWhoseJobOrPodIsDeletedIsRepeated(t *testing.T) {
	t.Parallel()
	job := func(propagation metav1.DeletionPropagation) func(*world, string, corev1.Pod) error {
		return func(w *world, job string, _ corev1.Pod) error {
			return kube.BatchV1().Jobs(ownNamespace).Delete(w.ctx(), job, metav1.DeleteOptions{PropagationPolicy: &propagation})
		}
	}
	for name, deletion := range map[string]func(*world, string, corev1.Pod) error{
		"background": job(metav1.DeletePropagationBackground),
		"foreground": job(metav1.DeletePropagationForeground),
		"orphan":     job(metav1.DeletePropagationOrphan),
		"pod": func(w *world, _ string, pod corev1.Pod) error {
			return kube.CoreV1().Pods(ownNamespace).Delete(w.ctx(), pod.Name, metav1.DeleteOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "deleted-"+name)
			class, _ := w.service(scripted(deletes+"sleep 10\n"+offer, nil))
			claim := w.claim(class, "data")
			ran, pod := w.running(claim)
			w.must(deletion(w, ran, pod), "delete the "+name)
			w.bound(claim)
			w.deleteClaim(claim)
			w.vanished(claim)
		})
	}
}

// Two installations have one provisioner name, and both believe that they lead: a chart that was
// installed twice. Each claim gets one volume, by one run.
func TestTwoInstallationsWithOneNameServeEachClaimOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "twice")
	w.started("--leader-elect=false")
	w.started("--leader-elect=false")
	w.class(w.ns, w.oursAlone)
	w.config(w.ns, w.ns, scripted(deletes+"sleep 1\n"+offer, nil))
	var claims []*corev1.PersistentVolumeClaim
	for i := range 12 {
		claims = append(claims, w.claim(w.ns, fmt.Sprintf("data-%d", i)))
	}
	for _, claim := range claims {
		w.bound(claim)
		equal(t, "provisions of "+claim.Name, len(w.jobs(claim, "provision")), 1)
	}
	for _, claim := range claims {
		w.deleteClaim(claim)
	}
	for _, claim := range claims {
		w.vanished(claim)
		equal(t, "deletes of "+claim.Name, len(w.jobs(claim, "delete")), 1)
	}
}

// A ResourceQuota demands limits, and a LimitRange allows less memory than the default: the claim
// quotes both, and is served when the template says what they demand.
func TestAClaimQuotesTheQuotaAndTheLimitsOfItsPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "limits")
	w.started()
	_, err := kube.CoreV1().LimitRanges(w.ns).Create(w.ctx(), limits("128Mi"), metav1.CreateOptions{})
	w.must(err, "create the LimitRange")
	w.class(w.ns, w.oursAlone)
	cm := w.config(w.ns, w.ns, scripted(deletes+offer, nil))
	claim := w.claim(w.ns, "data")
	w.event(claim, "FailedCreate", "maximum memory usage per Container is 128Mi")
	w.edit(cm, scripted(deletes+offer, nil, withMemory("64Mi")))
	w.bound(claim)
	_, err = kube.CoreV1().ResourceQuotas(w.ns).Create(w.ctx(), demands(corev1.ResourceLimitsCPU, "2"), metav1.CreateOptions{})
	w.must(err, "create the quota")
	second := w.claim(w.ns, "second")
	w.event(second, "FailedCreate", "must specify limits.cpu")
	w.must(kube.CoreV1().ResourceQuotas(w.ns).Delete(w.ctx(), "demands", metav1.DeleteOptions{}), "lift the quota")
	w.eventually(2*time.Minute, "the claim to be bound", func(ctx context.Context) error { return succeeded(ctx, second) })
}

// A cluster behind a proxy gives each pod its variables, and a Service of another program has a name
// that begins with flex-: the API server is asked directly, and no variable of that Service is a
// property.
func TestVariablesOfProxiesAndServicesChangeNoRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "variables")
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "flex-filer"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 2049}}},
	}
	_, err := kube.CoreV1().Services(ownNamespace).Create(w.ctx(), service, metav1.CreateOptions{})
	w.must(err, "create the Service")
	w.whenDone(func() {
		w.gone(kube.CoreV1().Services(ownNamespace).Delete(w.ctx(), service.Name, metav1.DeleteOptions{}), "the Service")
	})
	const script = deletes + `for name in "${!FLEX_FILER_@}"; do flex refuse "a property of $name"; done` + "\n" +
		`flex pv '{"spec": {"nfs": {"server": "10.250.0.9", "path": "/exports/'$FLEX_PV_NAME'"}}}'` + "\n"
	behindProxy := func(p *corev1.PodTemplateSpec) {
		c := &p.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://10.250.0.9:3128"})
	}
	class, _ := w.service(scripted(script, map[string]string{
		"write-pv": "container", "service-account-name": "cinder-provisioner",
	}, behindProxy))
	w.bound(w.claim(class, "data"))
}

// A priority class that the template names does not exist, or a container that a policy adds has no
// image: the claim says so, and is served when it does.
func TestAClaimSaysThatItsPriorityClassDoesNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "no-priority")
	class, cm := w.service(scripted(deletes+offer, nil, func(p *corev1.PodTemplateSpec) { p.Spec.PriorityClassName = w.ns }))
	claim := w.claim(class, "data")
	w.event(claim, "FailedCreate", "no PriorityClass with name "+w.ns)
	w.edit(cm, scripted(deletes+offer, nil))
	w.bound(claim)
}
