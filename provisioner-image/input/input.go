// Package input reads what a run is asked to do, from its argument, its environment and its files. It
// asks nobody: the same input always gives the same order.
package input

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	cloud "github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Input is all that an order is read from.
type Input struct {
	Verb contract.Verb
	// Dir is contract.Dir.
	Dir fs.FS
	Env map[string]string
	// Namespace is the pod's own, where Secrets go.
	Namespace string
}

// Order is one run's order.
type Order struct {
	Verb    contract.Verb
	Request contract.Request
	// PV is the skeleton to complete, or the PV to delete.
	PV    *corev1.PersistentVolume
	Login cloud.Login
	// Volume is what the claim wants of the storage.
	Volume volume.Spec
	// Options are what the class says about the PV's source.
	mapper.Options

	// Secret is where the PV's Secret goes, if its source needs one.
	Secret corev1.SecretReference
}

// Error is an order that cannot be followed, with the exit code that says so.
type Error struct {
	Code int
	Err  error
}

// Error says what is wrong with the order.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the faults below.
func (e *Error) Unwrap() error { return e.Err }

func fault(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

// Read reads the order. A request that no run of this image could fulfil is refused here.
func Read(in Input) (Order, error) {
	o := Order{Verb: in.Verb}
	var err error
	if o.Request, err = readRequest(in); err != nil {
		return o, err
	}
	class, err := readClass(o.Request.Properties)
	if err != nil {
		return o, fault(contract.ExitConfig, err)
	}
	if o.Login, err = readLogin(in, class); err != nil {
		return o, fault(contract.ExitConfig, err)
	}
	if in.Verb == contract.List {
		o.Volume.Cluster = clean(class.cluster)
		return o, nil
	}
	return o, o.readClaim(in, class)
}

// readClaim reads what is about one claim.
func (o *Order) readClaim(in Input, c class) error {
	var err error
	if o.PV, err = readPV(in, o.Request); err != nil {
		return fault(contract.ExitUsage, err)
	}
	if o.Volume, err = spec(o.Request, c); err != nil {
		return err
	}
	o.Secret = corev1.SecretReference{Namespace: in.Namespace, Name: o.Request.PVName}
	if in.Verb != contract.Provision {
		// To grow a volume or take it back needs nothing of how it is mounted.
		return nil
	}
	if err := errors.Join(checkClone(o.Request, c), o.stayInZone(c)); err != nil {
		return err
	}
	o.Options, err = options(in, c)
	return fault(contract.ExitConfig, err)
}

func readRequest(in Input) (contract.Request, error) {
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
		// It is about no claim; a request may bring the class's properties.
		return append(requests.Items, none)[0], nil
	}
	if n := len(requests.Items); n != 1 {
		return none, fault(contract.ExitConfig,
			fmt.Errorf("%d requests in one run: this image serves one, set batch-size to 1", n))
	}
	return requests.Items[0], fault(contract.ExitUsage, check(requests.Items[0]))
}

// uidForm keeps anything out of Cinder's filters that they would read as syntax.
var uidForm = regexp.MustCompile(`^[0-9A-Za-z-]{1,63}$`)

func check(r contract.Request) error {
	if !uidForm.MatchString(r.UID) {
		return fmt.Errorf("the request's UID %q is no UID", r.UID)
	}
	if r.PVName == "" {
		return errors.New("the request names no PV")
	}
	return nil
}

func readPV(in Input, r contract.Request) (*corev1.PersistentVolume, error) {
	data, err := fs.ReadFile(in.Dir, "pv.json")
	if err != nil {
		return nil, fmt.Errorf("read the PV: %w", err)
	}
	pv := &corev1.PersistentVolume{}
	if err := yaml.Unmarshal(data, pv); err != nil {
		return nil, fmt.Errorf("read the PV in pv.json: %w", err)
	}
	if pv.Name != r.PVName {
		return nil, fmt.Errorf("pv.json holds PV %q, the request is about %q", pv.Name, r.PVName)
	}
	return pv, nil
}
