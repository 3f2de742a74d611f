package config

import (
	"bytes"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// SameStorage reports whether the runs of two configs certainly reach the same storage. A delete that
// finds nothing ends with success, so in the storage of another config it would lose the volume. Only
// what storageOf leaves out may differ, and whatever is added to a config may not.
func SameStorage(a, b Config) bool {
	sameText := a.Script == b.Script || !holdsAddress(a) && !holdsAddress(b)
	return sameText && bytes.Equal(storageOf(a), storageOf(b))
}

// holdsAddress reports whether the script of a config names its storage itself, as far as that is
// seen. An edit of it may be the address of another storage.
func holdsAddress(c Config) bool { return lineOfAddress(c.Script) > 0 }

// storageOf returns, in JSON, a config without what an administrator corrects. That is image,
// script and command, the verbs, limits of runs, users of the pod, and labels of the pod that no
// container reads. It is also the scheduling, unless that says on which node the storage is. An
// image knows its storage by its properties: a server that stands in the command is not compared,
// and docs/configuration.md says so.
func storageOf(c Config) []byte {
	template, scheduling := c.template(), corev1.PodSpec{}
	if !readsLabels(template.Spec) {
		template.Labels = nil
	}
	dropCorrectable(&template.Spec)
	if c.onNodes {
		scheduling = corev1.PodSpec{NodeSelector: c.Scheduling.NodeSelector, Affinity: c.Scheduling.Affinity}
	}
	c.Source, c.Scheduling = Source{Namespace: c.Source.Namespace, Name: c.Source.Name}, scheduling
	c.Image, c.PullPolicy, c.Verbs, c.Warnings, c.Script, c.Each = "", "", nil, nil, "", false
	c.Timeout, c.MaxAttempts, c.MaxParallel, c.BatchSize, c.LaterBatch, c.NodeGone = 0, 0, 0, 0, 0, ""
	c.Clones, c.AttributesClasses, c.RequestKeys = false, false, nil
	text, err := json.Marshal(struct {
		Config
		Template corev1.PodTemplateSpec
	}{c, template})
	if err != nil {
		panic(err) // it was decoded from JSON: cannot fail
	}
	return text
}

// dropCorrectable takes out of a template what may be corrected.
func dropCorrectable(spec *corev1.PodSpec) {
	spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.TopologySpreadConstraints = nil, nil, nil, nil
	spec.SchedulerName, spec.PriorityClassName, spec.Resources, spec.ImagePullSecrets = "", "", nil, nil
	spec.SecurityContext, spec.TerminationGracePeriodSeconds = nil, nil
	for i := range spec.Containers {
		if c := &spec.Containers[i]; c.Name == contract.Container {
			c.Command, c.Resources, c.SecurityContext = nil, corev1.ResourceRequirements{}, nil
		}
	}
	spec.Containers = slices.DeleteFunc(append([]corev1.Container{}, spec.Containers...), func(c corev1.Container) bool {
		return equality.Semantic.DeepEqual(c, corev1.Container{Name: contract.Container})
	})
}

// template returns the template of a config that has no faults.
func (c Config) template() (t corev1.PodTemplateSpec) {
	if len(c.Template) > 0 && json.Unmarshal(c.Template, &t) != nil {
		return corev1.PodTemplateSpec{}
	}
	return t
}
