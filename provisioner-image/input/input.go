package input

import (
	"errors"
	"fmt"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Sources are what a task is read from.
type Sources struct {
	Verb contract.Verb
	// Dir is contract.Dir.
	Dir fs.FS
	Env map[string]string
	// Namespace is the pod's own. Secrets are created there.
	Namespace string
	// Methods are the ways in which the storage can export a volume, the default first.
	Methods []volume.Method
}

// Task is one request that a run is to do.
type Task struct {
	Verb    contract.Verb
	Request contract.Request
	// Fault says why this image can never do the task. With it the rest of the task may be missing.
	Fault error
	// Shared is true if the run has other tasks, and Parallel how many of them are executed at a
	// time.
	Shared   bool
	Parallel int
	// PV is the skeleton to complete, or the PV to delete.
	PV    *corev1.PersistentVolume
	Login credentials.Login
	// Volume is what the claim wants of the storage.
	Volume volume.Spec
	// InZone is true if pods can use the volume only in its zone.
	InZone bool
	// NodeZones are the zones whose nodes can use the volume, where the class names Cinder's zone by
	// another name than theirs. There are none if all can.
	NodeZones []string
	// Options are what the class says about the PV's source.
	mapper.Options

	// Secret names the PV's own Secret, if its source needs one.
	Secret corev1.SecretReference
}

// Error is a task that cannot be done, with the exit code that says so.
type Error struct {
	Code int
	Err  error
}

// Error says what is wrong with the task.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the faults below.
func (e *Error) Unwrap() error { return e.Err }

func fault(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

// Read reads the tasks of a run: one, or one for each request of a batch, in their order. A task
// that this image can never do has a Fault, which keeps no other one from being done. An error is
// about the run, whose requests are not known then.
func Read(in Sources) ([]Task, error) {
	requests, err := readRequests(in)
	if err != nil {
		return nil, err
	}
	common, err := readCommon(in, requests)
	tasks := make([]Task, len(requests))
	for i, r := range requests {
		tasks[i] = Task{Verb: in.Verb, Request: r, Shared: len(requests) > 1, Parallel: common.parallel, Login: common.login, Fault: err}
		if err == nil {
			tasks[i].Fault = tasks[i].read(common, i)
		}
	}
	return tasks, nil
}

// common is what all requests of a run share: verb, config and class are the same.
type common struct {
	Sources

	class    class
	parallel int
	login    credentials.Login
	pvs      []*corev1.PersistentVolume
}

// readCommon reads what the requests share, of which there is at least one.
func readCommon(in Sources, requests []contract.Request) (common, error) {
	of := common{Sources: in, parallel: defaultParallel}
	var err error
	if of.class, err = readClass(in.Verb, requests[0].Properties, requests[0].ClusterUID); err != nil {
		return of, fault(contract.ExitConfig, err)
	}
	if of.parallel, err = parallel(of.class); err != nil {
		return of, fault(contract.ExitConfig, err)
	}
	if of.login, err = readLogin(in, of.class); err != nil || in.Verb == contract.List {
		return of, fault(contract.ExitConfig, err)
	}
	of.pvs, err = readPVs(in, len(requests))
	return of, fault(contract.ExitUsage, err)
}

// read reads the part of the task that is about its own request, the i-th.
func (task *Task) read(of common, i int) error {
	if task.Verb == contract.List {
		// A list is about no claim.
		task.Volume.Cluster = searchable(of.class.cluster)
		return nil
	}
	if err := checkRequest(task.Request); err != nil {
		return fault(contract.ExitUsage, err)
	}
	if task.PV = of.pvs[i]; task.PV.Name != task.Request.PVName {
		return fault(contract.ExitUsage, fmt.Errorf("pv.json contains PV %q, and the request names %q", task.PV.Name, task.Request.PVName))
	}
	return task.readClaim(of.Sources, of.class)
}

// readClaim reads what the claim wants.
func (task *Task) readClaim(in Sources, c class) error {
	var err error
	if task.Volume, err = spec(in, task.Request, c); err != nil {
		return err
	}
	task.Secret = corev1.SecretReference{Namespace: in.Namespace, Name: task.Request.PVName}
	if in.Verb != contract.Provision {
		// Growing and deleting do not depend on how the volume is mounted.
		return nil
	}
	if err := errors.Join(checkClone(task.Request, c, task.Volume.Adopt), task.setZone(c)); err != nil {
		return err
	}
	task.Options, err = options(in, c)
	return fault(contract.ExitConfig, err)
}

func readRequests(in Sources) ([]contract.Request, error) {
	data, err := fs.ReadFile(in.Dir, "request.json")
	if err != nil {
		return nil, fault(contract.ExitUsage, fmt.Errorf("read the request: %w", err))
	}
	requests, err := contract.DecodeRequests(data)
	switch {
	case err != nil:
		return nil, fault(contract.ExitUsage, err)
	case requests.Verb != in.Verb:
		return nil, fault(contract.ExitUsage,
			fmt.Errorf("the verb of the argument is %q, and that of the request is %q", in.Verb, requests.Verb))
	case in.Verb == contract.List:
		// Its request may hold the class's properties.
		return append(requests.Items, contract.Request{})[:1], nil
	case len(requests.Items) == 0:
		return nil, fault(contract.ExitUsage, errors.New("no request is given"))
	}
	return requests.Items, nil
}

// checkRequest checks the texts that Cinder's filters or URLs would read as syntax.
func checkRequest(r contract.Request) error {
	if !volume.IsID(r.UID) {
		return fmt.Errorf("the UID %q of the request must be a UID", r.UID)
	}
	if r.PVName == "" {
		return errors.New("the request does not name a PV")
	}
	if r.ListedVolume != "" && !volume.IsID(r.ListedVolume) {
		return fmt.Errorf("the request's volume %q is no ID", r.ListedVolume)
	}
	return nil
}

// readPVs reads the PV of each request, in the order of the requests. One request has the PV
// itself, more have a List.
func readPVs(in Sources, requests int) ([]*corev1.PersistentVolume, error) {
	data, err := fs.ReadFile(in.Dir, "pv.json")
	if err != nil {
		return nil, fmt.Errorf("read the PV: %w", err)
	}
	if requests == 1 {
		pv := &corev1.PersistentVolume{}
		if err := yaml.Unmarshal(data, pv); err != nil {
			return nil, fmt.Errorf("read the PV in pv.json: %w", err)
		}
		return []*corev1.PersistentVolume{pv}, nil
	}
	var list corev1.PersistentVolumeList
	if err := yaml.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("read the PVs in pv.json: %w", err)
	}
	if len(list.Items) != requests {
		return nil, fmt.Errorf("pv.json contains %d PVs for %d requests", len(list.Items), requests)
	}
	var pvs []*corev1.PersistentVolume
	for i := range list.Items {
		pvs = append(pvs, &list.Items[i])
	}
	return pvs, nil
}
