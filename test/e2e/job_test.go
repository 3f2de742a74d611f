//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jobsOf lists a claim's Jobs of one verb, or of every verb if it is empty, the oldest first.
func jobsOf(ctx context.Context, uid, verb string) ([]batchv1.Job, error) {
	selector := "claim.flex-provisioner.io/" + uid // a Job may serve several claims
	if verb != "" {
		selector += ",flex-provisioner.io/verb=" + verb
	}
	list, err := kube.BatchV1().Jobs("").List(ctx, labelled(selector))
	if err != nil {
		return nil, fmt.Errorf("list the Jobs of the claim %s: %w", uid, err)
	}
	slices.SortFunc(list.Items, func(a, b batchv1.Job) int {
		if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return list.Items, nil
}

func (w *world) jobs(claim *corev1.PersistentVolumeClaim, verb string) []batchv1.Job {
	w.t.Helper()
	jobs, err := jobsOf(w.ctx(), string(claim.UID), verb)
	w.must(err, "look at the Jobs")
	return jobs
}

// onlyJob is the one Job of a verb that the claim has.
func (w *world) onlyJob(claim *corev1.PersistentVolumeClaim, verb string) batchv1.Job {
	w.t.Helper()
	jobs := w.jobs(claim, verb)
	if len(jobs) != 1 {
		w.t.Fatalf("the claim %s has %d Jobs of the verb %s, not one: %v", claim.Name, len(jobs), verb, names(jobs))
	}
	return jobs[0]
}

func names(jobs []batchv1.Job) []string {
	var out []string
	for _, job := range jobs {
		out = append(out, job.Name)
	}
	return out
}

// released reports whether the Job is no longer a record.
func released(job batchv1.Job) bool {
	return !slices.Contains(job.Finalizers, "flex-provisioner.io/record")
}

// heldJobs returns the names of a claim's Jobs that are still records.
func heldJobs(ctx context.Context, uid string) ([]string, error) {
	jobs, err := jobsOf(ctx, uid, "")
	return names(slices.DeleteFunc(jobs, released)), err
}

// ended returns the condition with which a Job has ended, or nil.
func ended(job batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// jobEnded waits until the first Job of a claim for a verb is Complete or Failed. A delete takes effect
// before.
func (w *world) jobEnded(claim *corev1.PersistentVolumeClaim, verb string) (c *batchv1.JobCondition) {
	w.t.Helper()
	w.eventually(toBind, "the Job to end", func(ctx context.Context) error {
		jobs, err := jobsOf(ctx, string(claim.UID), verb)
		if err != nil {
			return err
		}
		if c = ended(jobs[0]); c == nil {
			return fmt.Errorf("%s has not", jobs[0].Name)
		}
		return nil
	})
	return c
}

// podsOf lists the pods of a Job.
func podsOf(ctx context.Context, job batchv1.Job) ([]corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(job.Namespace).List(ctx, labelled("job-name="+job.Name))
	if err != nil {
		return nil, fmt.Errorf("list the pods of the Job %s: %w", job.Name, err)
	}
	return list.Items, nil
}

// onlyPod is the one pod of a Job.
func (w *world) onlyPod(job batchv1.Job) corev1.Pod {
	w.t.Helper()
	pods, err := podsOf(w.ctx(), job)
	w.must(err, "look at the pods")
	if len(pods) != 1 {
		w.t.Fatalf("the Job %s has %d pods, not one", job.Name, len(pods))
	}
	return pods[0]
}

// noJob checks that no Job is created for the claim within a time.
func (w *world) noJob(claim *corev1.PersistentVolumeClaim, during time.Duration) {
	w.t.Helper()
	w.always(during, "no Job may be launched", func(ctx context.Context) error {
		jobs, err := jobsOf(ctx, string(claim.UID), "")
		if err == nil && len(jobs) > 0 {
			err = fmt.Errorf("there are %v", names(jobs))
		}
		return err
	})
}

// variable is the value of one of a Job's literal variables.
func variable(job batchv1.Job, name string) string {
	for _, v := range job.Spec.Template.Spec.Containers[0].Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// shell is a pod that runs one command in the bash image, with the claim at /data if there is one.
func shell(name, node, command string, claim *corev1.PersistentVolumeClaim) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "shell", Image: bashImage, Command: []string{"/bin/sh", "-euc", command},
			}},
		},
	}
	if node != "" {
		pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": node}
	}
	if claim != nil {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	}
	return pod
}

// pod makes a pod. A new namespace has no ServiceAccount for a moment and refuses it.
func (w *world) pod(pod *corev1.Pod) {
	w.t.Helper()
	w.eventually(toBind, "the API server to take the pod "+pod.Name, func(ctx context.Context) error {
		_, err := kube.CoreV1().Pods(w.ns).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// output waits until a pod has succeeded, and returns what it printed.
func (w *world) output(pod string) string {
	w.t.Helper()
	w.eventually(toBind, "the pod "+pod+" to succeed", func(ctx context.Context) error {
		now, err := kube.CoreV1().Pods(w.ns).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("its phase is %s %s %v", now.Status.Phase, now.Status.Message, now.Status.ContainerStatuses)
		}
		return nil
	})
	var log []byte
	w.eventually(10*time.Second, "the output of the pod "+pod, func(ctx context.Context) (err error) { // a kubelet that has just started refuses it once
		log, err = kube.CoreV1().Pods(w.ns).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
		return err
	})
	return string(log)
}
