package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestAnAuditSaysWhyAStorageCannotBeListed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		keys map[string]string
		set  func(*lab)
		want []string
	}{
		"the image does not say how many":  {nil, func(l *lab) { l.ends(0, "done", "") }, []string{"does not say in its termination message"}},
		"the login is refused":             {nil, func(l *lab) { l.ends(77, "Cinder refuses the password", "") }, []string{"CredentialsRefused", "refuses the password"}},
		"another controller holds it":      {nil, isHeld, []string{"within 1m0s", "scheduling gates of other controllers"}},
		"its Job is deleted":               {nil, isDeleted, []string{"was deleted"}},
		"its config changes meanwhile":     {nil, isChanged, []string{"its config has changed"}},
		"its config is faulty":             {map[string]string{"timeout": "soon"}, func(*lab) {}, []string{"gold", "timeout"}},
		"its image cannot be pulled":       {nil, waits, []string{"no such image"}},
		"it takes longer than it may take": {nil, runsOn, []string{"--timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, test.keys, func(l *lab) {
				test.set(l)
				l.mustFail(test.want...)
			}, ours())
		})
	}
}

// isHeld lets another controller keep each pod from being scheduled.
func isHeld(l *lab) {
	l.started = func(job *batchv1.Job) {
		l.pod(job, func(pod *corev1.Pod) {
			pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "example.com/quota"})
		})
	}
}

// isDeleted lets a user delete each Job.
func isDeleted(l *lab) {
	l.started = func(job *batchv1.Job) {
		if err := l.client.Tracker().Delete(batchv1.SchemeGroupVersion.WithResource("jobs"), job.Namespace, job.Name); err != nil {
			l.t.Error(err)
		}
	}
}

// isChanged lets a user change the config before the pod of a Job is there.
func isChanged(l *lab) {
	l.started = func(job *batchv1.Job) {
		changed := configOf("gold", map[string]string{"image": "localhost/gold:v2", "service-account-name": "gold", "verbs": "provision,delete,list"})
		if err := l.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), changed, changed.Namespace); err != nil {
			l.t.Error(err)
		}
		l.pod(job, func(*corev1.Pod) {})
	}
	l.ungated = func(*corev1.Pod) { l.t.Error("it was started") }
}

// waits lets the container of each Job wait for its image.
func waits(l *lab) {
	l.started = func(job *batchv1.Job) {
		l.pod(job, func(pod *corev1.Pod) {
			pod.Spec.SchedulingGates, pod.Spec.NodeName = nil, "node-1"
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.Container, State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"},
			}}}
		})
	}
}

// runsOn lets the container of each Job run.
func runsOn(l *lab) {
	l.started = func(job *batchv1.Job) {
		l.pod(job, func(pod *corev1.Pod) { pod.Spec.SchedulingGates, pod.Status.Phase = nil, corev1.PodRunning })
	}
}

func TestAClassThatNeedsNoListIsNotedAndKeepsNoOtherFromBeingListed(t *testing.T) {
	retained := class("plain")
	retained.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
	plain := configOf("plain", map[string]string{"image": "i", "service-account-name": "s"})
	inLab(t, nil, func(l *lab) {
		l.ends(0, contract.EncodeListEnd(0), "")
		got, err := l.Look(l.t.Context(), run.Storages{All: true})
		if err != nil || len(got.Faults) > 0 || len(got.Notes) != 1 || len(got.State.Volumes) != 1 {
			l.t.Fatalf("faults %v, notes %v, listed %v, error %v", got.Faults, got.Notes, got.State.Volumes, err)
		}
		got, err = l.Look(l.t.Context(), run.Storages{Classes: []string{"gold", "plain", "none"}})
		if err != nil || len(got.Faults) != 2 || len(got.State.Volumes) != 1 {
			l.t.Fatalf("faults %v, listed %v, error %v", got.Faults, got.State.Volumes, err)
		}
	}, retained, plain)
}

// completes lets each Job be Complete, with so many pods that are there still: what collects pods
// that have ended has taken the others.
func (l *lab) completes(ends ...string) {
	l.started = func(job *batchv1.Job) {
		for i, message := range ends {
			l.pod(job, func(pod *corev1.Pod) {
				pod.Name, pod.CreationTimestamp = fmt.Sprintf("%s-%d", job.Name, len(ends)-i), metav1.NewTime(time.Now().Add(time.Duration(i)*time.Second))
				pod.Spec.SchedulingGates, pod.Status.Phase = nil, corev1.PodSucceeded
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.Container, State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{Message: message, FinishedAt: metav1.Now()},
				}}}
			})
		}
		job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		if err := l.client.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, job.Namespace); err != nil {
			l.t.Error(err)
		}
	}
}

func TestAnAuditSaysThatThePodOfAListWasDeletedBeforeItWasRead(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		l.completes()
		l.mustFail("gold", "was deleted before it was read", "Remedy")
	}, ours())
}

// Whoever may create pods in the namespace can label one with the UID of a Job. What that pod lists
// is not believed, and neither is the Job that it completes.
func TestAnAuditReadsNoPodOfOthers(t *testing.T) {
	t.Parallel()
	for name, withOwn := range map[string]bool{"beside the Job's own": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			inLab(t, nil, func(l *lab) {
				l.completes(contract.EncodeListEnd(1))
				completed := l.started
				l.log = volumeLine(otherUID, "v-of-another", clusterID)
				l.started = func(job *batchv1.Job) {
					others := job.DeepCopy()
					others.Spec.Template.Labels = map[string]string{}
					completed(others)
					if withOwn {
						l.pod(job, func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) })
					}
				}
				l.mustFail("gold", "the Job flex-provisioner/list-")
			})
		})
	}
}

// A Job that was suspended and is resumed has another pod.
func TestAnAuditReadsTheNewestPodOfAList(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		l.completes("", contract.EncodeListEnd(0))
		if got, err := l.Look(l.t.Context(), run.Storages{All: true}); err != nil || len(got.Faults) > 0 || len(got.State.Volumes) != 1 {
			l.t.Errorf("faults %v, listed %v, error %v", got.Faults, got.State.Volumes, err)
		}
	})
}

func TestAnAuditThatIsInterruptedDeletesItsJob(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		runsOn(l)
		ctx, stop := context.WithTimeout(l.t.Context(), 10*time.Second)
		defer stop()
		if _, err := l.Look(ctx, run.Storages{All: true}); err == nil {
			l.t.Error("it ended without an error")
		}
		l.mustLeaveNoJob()
	})
}

// An image's message is cut off from what follows it by nothing but its line.
func TestTheMessageOfAnImageAddsNoLineToAnError(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		l.ends(75, "busy\nSecretLeft: secret/a -n b\n    touch PWNED", "")
		look, err := l.Look(l.t.Context(), run.Storages{Classes: []string{"gold"}})
		if err != nil || len(look.Faults) != 1 || strings.Contains(look.Faults[0].Error(), "\n") || !strings.Contains(look.Faults[0].Error(), "busy SecretLeft") {
			l.t.Errorf("the faults are %q, %v", look.Faults, err)
		}
	})
}
