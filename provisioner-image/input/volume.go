package input

import (
	"errors"
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Keys of a volume's metadata, beside volume.KeyUID, by which a storage administrator sees whose
// volume it is.
const (
	keyNamespace = contract.Domain + "claim-namespace"
	keyName      = contract.Domain + "claim-name"
	keyPV        = contract.Domain + "pv-name"
	keyClass     = contract.Domain + "storage-class"
)

// spec returns the volume that the claim wants.
func spec(in Sources, r contract.Request, c class) (volume.Spec, error) {
	gib, hints, err := asked(in.Verb, r, c)
	if err != nil {
		return volume.Spec{}, err
	}
	how, howErr := access(in, c)
	name, nameErr := volumeName(r, c)
	extra, extraErr := metadata(r, c)
	adopt, adoptErr := adopted(r, c)
	return volume.Spec{
		UID:        r.UID,
		Cluster:    searchable(c.cluster),
		ClusterUID: r.ClusterUID,
		Name:       name,
		SizeGiB:    gib,
		Type:       c.volumeType,
		Metadata:   extra,
		Hints:      hints,
		Source:     volume.Source{SnapshotID: c.snapshot},
		Adopt:      adopt,
		Access:     how,
	}, fault(contract.ExitConfig, errors.Join(howErr, nameErr, extraErr, adoptErr))
}

// asked returns the size and the hints that the claim's user asks for, as far as a verb needs them.
// An undo has the request of its run: a wrong hint, for which that run was refused, once kept every
// undo from removing what an earlier run had made
// (TestUndoOfAClaimWhoseRequestWasRefusedRemovesWhatAnEarlierRunMade).
func asked(verb contract.Verb, r contract.Request, c class) (gib int, hints map[string]any, err error) {
	if verb == contract.Provision {
		if hints, err = schedulerHints(r, c); err != nil {
			return 0, nil, err
		}
	}
	if verb != contract.Delete {
		gib, err = gibibytes(r.Size)
	}
	return gib, hints, fault(contract.ExitBadRequest, err)
}

// maxGiB is the largest size that storages and their clients can count.
const maxGiB = 1<<31 - 1

// gibibytes rounds up to GiB, Cinder's unit.
func gibibytes(size int64) (int, error) {
	gib := (size-1)>>30 + 1
	if size <= 0 || gib > maxGiB {
		return 0, fmt.Errorf("a size of %d bytes is not supported", size)
	}
	return int(gib), nil
}
