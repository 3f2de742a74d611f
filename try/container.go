package try

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/try/box"
)

// notStarted is the kubelet's reason of a container that was not started.
const notStarted = "StartError"

// program runs the container of a pod. One that conform has asked to hold is killed at that moment,
// and its end is seen when conform deletes its pod.
func (w *world) program(ctx context.Context, k *fakecluster.Container) fakecluster.Exit {
	w.working.Add(1)
	defer w.working.Add(-1)
	spec, err := w.spec(k)
	var end box.End
	if err == nil {
		end, err = w.trial.Runner.Run(ctx, spec)
	}
	if err != nil && ctx.Err() == nil {
		w.note(k, box.End{Code: box.NotStarted, Output: err.Error()})
		return fakecluster.Exit{Code: box.NotStarted, Reason: notStarted, Message: cut(err.Error())}
	}
	if end.Killed {
		w.working.Add(-1)
		<-ctx.Done()
		w.working.Add(1)
	}
	w.note(k, end)
	message := end.Message
	if message == "" && end.Code != 0 {
		message = tail(end.Output)
	}
	return fakecluster.Exit{Code: int32(end.Code), Message: cut(message)} //nolint:gosec // below 256
}

// note keeps how a run ended, and shows it.
func (w *world) note(k *fakecluster.Container, end box.End) {
	w.mu.Lock()
	defer w.mu.Unlock()
	verb := k.Verb()
	if verb == contract.List {
		w.listed = end.Output
		return
	}
	if end.Code == 0 {
		w.last[verb] = end.Took
	}
	requests, err := contract.DecodeRequests([]byte(k.File(contract.RequestFile)))
	if err != nil {
		return
	}
	var names []string
	for _, r := range requests.Items {
		names = append(names, r.Namespace+"/"+r.Name)
	}
	w.trial.Shown(Shown{Verb: verb, Claim: strings.Join(names, " "), End: end})
}

// took returns how long the last run of a verb took that was done.
func (w *world) took(verb contract.Verb) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[verb]
}

// show shows the PersistentVolumes that were written, and the events about claims, since the last
// time.
func (w *world) show() {
	history := w.Server.History()
	for _, change := range history[w.shown:] {
		if pv, ok := change.Now.(*corev1.PersistentVolume); ok && change.Verb == "create" {
			w.mu.Lock()
			w.trial.Shown(Shown{PV: pv})
			w.mu.Unlock()
		}
	}
	w.shown = len(history)
	for _, e := range w.Events.Since(w.events) {
		w.events++
		if strings.HasPrefix(e.About, claimKind) {
			w.mu.Lock()
			w.trial.Shown(Shown{Event: e.Type + " " + e.Reason + ": " + e.Note})
			w.mu.Unlock()
		}
	}
}

// How much of an output a kubelet makes the message of a container that has written none
// (pkg/kubelet/kuberuntime/kuberuntime_container.go, readLastStringFromContainerLogs).
const tailLines, tailBytes = 80, 2048

func tail(output string) string {
	lines := strings.SplitAfter(output, "\n")
	text := strings.Join(lines[max(0, len(lines)-tailLines):], "")
	return text[max(0, len(text)-tailBytes):]
}

func cut(message string) string { return message[:min(len(message), contract.MaxMessage)] }

// spec returns the container of a pod as a box runs it.
func (w *world) spec(k *fakecluster.Container) (box.Spec, error) {
	pod := &k.Pod.Spec
	i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == contract.Container })
	c := pod.Containers[i]
	env, err := w.environment(c)
	if err != nil {
		return box.Spec{}, err
	}
	s := box.Spec{Image: c.Image, Command: c.Command, Args: c.Args, Env: env, Dir: c.WorkingDir, KillAfter: heldAfter(k)}
	identity(&s, pod.SecurityContext, c.SecurityContext)
	for _, mount := range c.VolumeMounts {
		volume, err := w.volume(k, mount)
		if err != nil {
			return s, err
		}
		s.Volumes = append(s.Volumes, volume)
	}
	return s, nil
}

// heldAfter returns when a run is to be killed, 0 for never.
func heldAfter(k *fakecluster.Container) time.Duration {
	verb, after, held := strings.Cut(k.Pod.Annotations[conform.AnnHold], " ")
	if !held || verb != string(k.Verb()) || !strings.HasSuffix(k.Pod.Labels[batchv1.JobNameLabel], "-1") {
		return 0
	}
	d, _ := time.ParseDuration(after) // conform has written it
	return max(d, time.Millisecond)
}

// identity sets the user and the capabilities of a container, as far as the pod or the container says
// so.
func identity(s *box.Spec, pod *corev1.PodSecurityContext, c *corev1.SecurityContext) {
	pod, c = cmp.Or(pod, &corev1.PodSecurityContext{}), cmp.Or(c, &corev1.SecurityContext{})
	s.UID = int(*cmp.Or(c.RunAsUser, pod.RunAsUser, new(int64)))
	s.GID = int(*cmp.Or(c.RunAsGroup, pod.RunAsGroup, new(int64)))
	if c.Capabilities == nil || s.UID != 0 { // the kernel gives another user none of them
		return
	}
	for _, name := range c.Capabilities.Add {
		s.CapsAdded = append(s.CapsAdded, string(name))
	}
}

// environment returns the variables of a container, those of a Secret first.
func (w *world) environment(c corev1.Container) ([]string, error) {
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.SecretRef == nil {
			return nil, fmt.Errorf("envFrom of a ConfigMap is not tried")
		}
		secret := w.trial.secret(from.SecretRef.Name)
		if secret == nil {
			return nil, w.trial.lacks("Secret", from.SecretRef.Name)
		}
		for key, value := range secret.Data {
			env[from.Prefix+key] = string(value)
		}
	}
	for _, v := range c.Env {
		value, err := w.valueOf(v, env)
		if err != nil {
			return nil, err
		}
		env[v.Name] = value
	}
	out := []string{box.Path}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out, nil
}

func (w *world) valueOf(v corev1.EnvVar, before map[string]string) (string, error) {
	if v.ValueFrom == nil {
		return expand(v.Value, before), nil
	}
	ref := v.ValueFrom.SecretKeyRef
	if ref == nil {
		return "", fmt.Errorf("the variable %s has a valueFrom that is not tried: only secretKeyRef is", v.Name)
	}
	secret := w.trial.secret(ref.Name)
	if secret == nil {
		return "", w.trial.lacks("Secret", ref.Name)
	}
	return string(secret.Data[ref.Key]), nil
}

// reference is a part of a variable's value that the kubelet replaces.
var reference = regexp.MustCompile(`\$\$|\$\([A-Za-z_][A-Za-z0-9_]*\)`)

// expand replaces references to earlier variables, and $$ by $, as the kubelet does
// (third_party/forked/golang/expansion in k8s.io/kubernetes).
func expand(value string, before map[string]string) string {
	return reference.ReplaceAllStringFunc(value, func(text string) string {
		if text == "$$" {
			return "$"
		}
		if known, found := before[text[2:len(text)-1]]; found {
			return known
		}
		return text
	})
}
