package input

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"

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

// Task is what one run is asked to do.
type Task struct {
	Verb    contract.Verb
	Request contract.Request
	// PV is the skeleton to complete, or the PV to delete.
	PV    *corev1.PersistentVolume
	Login credentials.Login
	// Volume is what the claim wants of the storage.
	Volume volume.Spec
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

// Read reads the task. It refuses a request that this image can never do.
func Read(in Sources) (Task, error) {
	task := Task{Verb: in.Verb}
	var err error
	if task.Request, err = readRequest(in); err != nil {
		return task, err
	}
	class, err := readClass(task.Request.Properties, task.Request.ClusterUID)
	if err != nil {
		return task, fault(contract.ExitConfig, err)
	}
	if task.Login, err = readLogin(in, class); err != nil {
		return task, fault(contract.ExitConfig, err)
	}
	if in.Verb == contract.List {
		task.Volume.Cluster = searchable(class.cluster)
		return task, nil
	}
	return task, task.readClaim(in, class)
}

// readClaim reads the part of the task that is about one claim.
func (task *Task) readClaim(in Sources, c class) error {
	var err error
	if task.PV, err = readPV(in, task.Request); err != nil {
		return fault(contract.ExitUsage, err)
	}
	if task.Volume, err = spec(in, task.Request, c); err != nil {
		return err
	}
	task.Secret = corev1.SecretReference{Namespace: in.Namespace, Name: task.Request.PVName}
	if in.Verb != contract.Provision {
		// Growing and deleting do not depend on how the volume is mounted.
		return nil
	}
	if err := errors.Join(checkClone(task.Request, c), task.restrictToZone(c)); err != nil {
		return err
	}
	task.Options, err = options(in, c)
	return fault(contract.ExitConfig, err)
}

func readRequest(in Sources) (contract.Request, error) {
	var none contract.Request
	data, err := fs.ReadFile(in.Dir, "request.json")
	if err != nil {
		return none, fault(contract.ExitUsage, fmt.Errorf("read the request: %w", err))
	}
	requests, err := contract.DecodeRequests(data)
	if err != nil {
		return none, fault(contract.ExitUsage, err)
	}
	if requests.Verb != in.Verb {
		return none, fault(contract.ExitUsage,
			fmt.Errorf("the verb is %q by the argument and %q by the request", in.Verb, requests.Verb))
	}
	if in.Verb == contract.List {
		// A list is about no claim. Its request may hold the class's properties.
		return append(requests.Items, none)[0], nil
	}
	return only(requests.Items)
}

// only returns the one request of a run.
func only(requests []contract.Request) (contract.Request, error) {
	if n := len(requests); n != 1 {
		return contract.Request{}, fault(contract.ExitConfig,
			fmt.Errorf("%d requests in one run: this image serves one, set batch-size to 1", n))
	}
	return requests[0], fault(contract.ExitUsage, checkRequest(requests[0]))
}

// uidForm allows no character that Cinder's filters would read as syntax.
var uidForm = regexp.MustCompile(`^[0-9A-Za-z-]{1,63}$`)

func checkRequest(r contract.Request) error {
	if !uidForm.MatchString(r.UID) {
		return fmt.Errorf("the request's UID %q is no UID", r.UID)
	}
	if r.PVName == "" {
		return errors.New("the request names no PV")
	}
	return nil
}

func readPV(in Sources, r contract.Request) (*corev1.PersistentVolume, error) {
	data, err := fs.ReadFile(in.Dir, "pv.json")
	if err != nil {
		return nil, fmt.Errorf("read the PV: %w", err)
	}
	return decodePV(data, r)
}

func decodePV(data []byte, r contract.Request) (*corev1.PersistentVolume, error) {
	pv := &corev1.PersistentVolume{}
	if err := yaml.Unmarshal(data, pv); err != nil {
		return nil, fmt.Errorf("read the PV in pv.json: %w", err)
	}
	if pv.Name != r.PVName {
		return nil, fmt.Errorf("pv.json holds PV %q, the request is about %q", pv.Name, r.PVName)
	}
	return pv, nil
}
