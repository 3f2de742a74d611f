package conform

import (
	"context"
	"fmt"
	"slices"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// Promise is what the contract asks of an image, and how it is tested.
type Promise struct {
	Name string
	// Contract says what an image must do, as the table of docs/contract.md does.
	Contract string
	// after are promises without which it cannot be tested.
	after []string
	// needs returns why the class or the flags do not allow to test it, nil if they do.
	needs func(*Run) error
	// ofStorage is set if only a list of the storage shows that it is kept.
	ofStorage bool
	test      func(context.Context, *trial) error
}

// Mount is the name of the promise that only pods of a cluster can test.
const Mount = "mount"

// Names of the promises that others need, or that a provocation is for.
const (
	provision      = "provision"
	provisionPV    = "provision-pv"
	remove         = string(contract.Delete)
	refuses        = "refuses"
	undoRefused    = "undo-refused"
	badConfig      = "bad-config"
	badCredentials = "bad-credentials"
	noCapacity     = "no-capacity"
)

// served are the promises that an image must keep before it makes sense to test most others.
var served = []string{provision, remove}

// Promises returns all promises, in the order in which they are tested.
func Promises() []Promise {
	return []Promise{
		{Name: provision, Contract: "create the volume and write its PersistentVolume", test: testProvision},
		{
			Name: provisionPV, Contract: "start from `pv.json`: keep the claimRef, the modes, the class, the mount options and the annotations. The capacity is at least the requested one, and no other PersistentVolume has the volume source",
			after: []string{provision}, test: testPV,
		},
		{
			Name: "list", Contract: "`list` prints a line for every volume, with each field, and the number of lines in the termination message",
			after: []string{provision}, needs: (*Run).whyUnlisted, test: testList,
		},
		{Name: remove, Contract: "`delete` deletes the volume", after: []string{provision}, ofStorage: true, test: testDelete},
		{
			Name: "secret", Contract: "a Secret of a volume is named after the PersistentVolume, has the label with the claim's UID, is named in the PersistentVolume's annotation, and is deleted with the volume",
			after: served, test: testSecret,
		},
		{
			Name: "provision-again", Contract: "every run may be repeated: before you create a volume, look for one of an earlier run",
			after: served, ofStorage: true, test: testProvisionAgain,
		},
		{Name: "provision-abandoned", Contract: "`delete` undoes: with `FLEX_UNDO=true` delete everything with the claim's UID, although there is no PersistentVolume", after: served, ofStorage: true, test: testAbandoned},
		{Name: "provision-killed", Contract: "every run may be repeated, from any point: a run of `provision` was killed", after: served, ofStorage: true, test: testProvisionKilled},
		{Name: "delete-killed", Contract: "every run may be repeated, from any point: a run of `delete` was killed. `delete` of a volume that does not exist succeeds", after: served, ofStorage: true, test: testDeleteKilled},
		{Name: "expand", Contract: "`expand` expands the volume to `FLEX_SIZE` bytes", after: served, needs: (*Run).whyNotExpanded, ofStorage: true, test: testExpand},
		{
			Name: "expand-killed", Contract: "every run may be repeated, from any point: a run of `expand` was killed. If the volume is already that large, exit 0",
			after: append(slices.Clone(served), "expand"), needs: (*Run).whyNotExpanded, ofStorage: true, test: testExpandKilled,
		},
		{Name: refuses, Contract: "a claim that cannot be provisioned as it is ends with exit code 65 or 73, and a line `claim: ` for its user. Other claims are not affected", after: served, test: testRefuses},
		{Name: undoRefused, Contract: "`delete` does not validate the request: an undo has the request of the newest run, which may have been refused", after: append(slices.Clone(served), refuses), ofStorage: true, test: testUndoRefused},
		{Name: badConfig, Contract: "a wrong configuration ends with exit code 64 or 78, and nothing is created", after: served, needs: provoked(badConfig), ofStorage: true, test: refusedAs(contract.BadConfig)},
		{Name: badCredentials, Contract: "credentials that the storage refuses end with exit code 77, and nothing is created. `delete` ends so, too: the volume may exist", after: served, needs: provoked(badCredentials), ofStorage: true, test: testBadCredentials},
		{Name: noCapacity, Contract: "a storage without capacity ends with exit code 73", after: append(slices.Clone(served), undoRefused), needs: provoked(noCapacity), test: refusedAs(contract.NoCapacity)},
		{Name: "batch", Contract: "a run for several requests reports each of them: one that is refused does not affect the others", after: served, needs: (*Run).whyNoBatch, test: testBatch},
		{Name: Mount, Contract: "the volume source is all that a node needs: data that a pod has written is there for the next pod", after: served, needs: (*Run).whyNotMounted, test: testMount},
		{Name: "clone", Contract: "a claim with a source gets a volume with the data of that source, never an empty one", after: served, needs: (*Run).whyNoClone, test: testClone},
		{Name: "quiet", Contract: "no credential is in what the claim's user sees: events, annotations, PersistentVolumes", after: []string{provision}, test: testQuiet},
	}
}

// names returns the names of all promises.
func names() (out []string) {
	for _, p := range Promises() {
		out = append(out, p.Name)
	}
	return out
}

func (r *Run) whyUnlisted() error {
	if !r.Config.Supports(contract.List) {
		return notClaimed("verbs lacks list, so a volume without a PersistentVolume cannot be seen")
	}
	return nil
}

func (r *Run) whyNotExpanded() error {
	switch {
	case !r.Config.Supports(contract.Expand):
		return notClaimed("verbs lacks expand")
	case r.Class.AllowVolumeExpansion == nil || !*r.Class.AllowVolumeExpansion:
		return notClaimed("the class lacks allowVolumeExpansion")
	default:
		return nil
	}
}

func (r *Run) whyNoBatch() error {
	if r.Config.BatchOf(contract.Provision) < 2 {
		return notClaimed("the config has no batch-size")
	}
	return nil
}

func (r *Run) whyNoClone() error {
	if !r.Config.Clones {
		return notClaimed("the config has no data-sources")
	}
	return nil
}

func (r *Run) whyNotMounted() error {
	if r.Mount == "" {
		return notProvoked("--mount=IMAGE names an image with a shell")
	}
	return nil
}

func provoked(name string) func(*Run) error {
	return func(r *Run) error {
		if _, ok := r.Provoke[name]; !ok {
			return notProvoked("--provoke=FILE says how")
		}
		return nil
	}
}

// check returns an error if a name is not that of a promise.
func check(name string) error {
	if !slices.Contains(names(), name) {
		return fmt.Errorf("no promise has the name %s: must be one of %v", quote.Name(name), names())
	}
	return nil
}
