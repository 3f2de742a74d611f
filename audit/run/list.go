package run

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// List returns what the storage of a class has, on all of its nodes if it is on nodes.
func (a *Auditor) List(ctx context.Context, c Class) ([]audit.Volume, error) {
	l := Look{State: audit.State{Volumes: map[string][]audit.Volume{}}}
	err := a.listOne(ctx, c, &l)
	out := l.State.Volumes[c.Name]
	for _, node := range l.State.Nodes {
		out = append(out, l.State.OnNodes[c.Name][node.Name]...)
	}
	return out, errors.Join(append(l.Faults, err)...)
}

// listAnywhere returns what the storage of a class has, by a Job with the class's own login that any
// node may run. The Job is deleted again, whatever has come of it.
func (a *Auditor) listAnywhere(ctx context.Context, c Class) ([]audit.Volume, error) {
	job, err := listJob(c, nil, a.Cluster)
	if err != nil {
		return nil, err
	}
	if job, err = a.create(ctx, job); err != nil {
		return nil, err
	}
	return a.listed(ctx, c, job)
}

// listed starts a Job that lists, and returns what it has listed. It deletes the Job.
func (a *Auditor) listed(ctx context.Context, c Class, job *batchv1.Job) ([]audit.Volume, error) {
	defer a.remove(ctx, job)
	end, err := a.await(ctx, job, func(ctx context.Context) error { return a.whyChanged(ctx, c) })
	if err != nil {
		return nil, err
	}
	return a.readLog(ctx, runs.NewestPod(end.pods))
}

// readLog reads what a pod has listed. The log may have been cut, or rotated by the kubelet: what
// the termination message says of it must be there.
func (a *Auditor) readLog(ctx context.Context, pod *corev1.Pod) ([]audit.Volume, error) {
	message := ""
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == contract.Container && s.State.Terminated != nil {
			message = s.State.Terminated.Message
		}
	}
	want, said := contract.DecodeListEnd(message)
	if !said {
		return nil, fmt.Errorf("the image does not say in its termination message how many volumes it has listed, as %s", contract.EncodeListEnd(3))
	}
	ctx, stop := context.WithTimeout(ctx, a.Timeout) // the kubelet sends it, and may never end it
	defer stop()
	log, err := a.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: contract.Container}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the log of the pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	defer log.Close()
	volumes, err := readLines(io.LimitReader(log, maxLog), func(string) error { return nil })
	if err != nil {
		return nil, fmt.Errorf("read the log of the pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if len(volumes) != want {
		return nil, fmt.Errorf("the log of the pod %s/%s has %d of the %d volumes that were listed: it was cut or rotated. Remedy: raise the kubelet's containerLogMaxSize",
			pod.Namespace, pod.Name, len(volumes), want)
	}
	return volumes, nil
}

// ReadVolumes reads what an image has listed: a line of JSON for each volume, and no other.
func ReadVolumes(from io.Reader) ([]audit.Volume, error) {
	return readLines(from, func(line string) error { return fmt.Errorf("read a list: the line %q is no volume", line) })
}

// How much is read of a list. A storage may list without an end, and the audit's memory is for those of
// all classes.
const (
	maxLine     = 1 << 20 // bytes of the longest line
	maxLog      = 1 << 26 // bytes of a log
	mostVolumes = 200_000
	longestName = 1024 // bytes of the storage's name of a volume
)

// readLines reads the volumes of a list. other is called with each line that is not one of them: a
// log has the container's messages, too.
func readLines(from io.Reader, other func(line string) error) ([]audit.Volume, error) {
	out := []audit.Volume{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var listed contract.Listed
		isVolume := json.Unmarshal(lines.Bytes(), &listed) == nil && listed.Volume != ""
		switch {
		case isVolume && len(listed.Volume) > longestName:
			return nil, fmt.Errorf("a volume has a name of %d bytes, and an audit reads %d. Remedy: let the image list an ID", len(listed.Volume), longestName)
		case isVolume && len(out) == mostVolumes:
			return nil, fmt.Errorf("there are more than the %d volumes that an audit reads. Remedy: find out which are not of this cluster, and let the image list only its own", mostVolumes)
		case isVolume:
			out = append(out, audit.Volume(listed))
		default:
			if err := other(lines.Text()); err != nil {
				return nil, err
			}
		}
	}
	return out, lines.Err()
}
