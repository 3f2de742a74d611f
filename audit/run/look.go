package run

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/flex-provisioner/flex-provisioner/audit"
)

// Storages says which storages an audit lists.
type Storages struct {
	// Files are lists that were made before, by class.
	Files map[string][]audit.Volume
	// All is set for those of all classes that can be listed, Classes names those of some.
	All     bool
	Classes []string
}

// Look is what one audit has found.
type Look struct {
	State audit.State
	Found []audit.Finding
	// Notes say which storages were not listed and need not be, Faults which could not be.
	Notes, Faults []error
}

// Look compares what is in the cluster with itself, and with what is in the storages. A storage
// that cannot be listed keeps no other from being listed.
func (a *Auditor) Look(ctx context.Context, of Storages) (Look, error) {
	before, err := a.ReadState(ctx)
	if err != nil {
		return Look{}, err
	}
	l := Look{State: before}
	maps.Copy(l.State.Volumes, of.Files)
	if of.All || len(of.Classes) > 0 {
		if err := a.listAll(ctx, of.Classes, &l); err != nil {
			return l, err
		}
		after, err := a.ReadState(ctx)
		if err != nil {
			return l, err
		}
		after.Volumes, after.OnNodes, after.Nodes = l.State.Volumes, l.State.OnNodes, l.State.Nodes
		l.State = after
	}
	l.Found = audit.CheckAround(before, l.State)
	return l, ctx.Err()
}

// listAll lists the storages of classes, one after the other.
func (a *Auditor) listAll(ctx context.Context, names []string, l *Look) error {
	classes, err := a.Classes(ctx, names...)
	if err != nil {
		return err
	}
	for _, c := range classes {
		delete(l.State.Volumes, c.Name)
		if err = c.Fault; err == nil {
			err = a.listOne(ctx, c, l)
		}
		switch {
		case err == nil:
		case len(names) == 0 && errors.Is(err, errUnlisted):
			l.Notes = append(l.Notes, fmt.Errorf("class %s: %w", c.Name, err))
		default:
			l.Faults = append(l.Faults, fmt.Errorf("class %s: %w", c.Name, err))
		}
	}
	return nil
}

// listOne lists the storage of a class.
func (a *Auditor) listOne(ctx context.Context, c Class, l *Look) error {
	if c.IsOnNodes() {
		return a.listNodes(ctx, c, l)
	}
	volumes, err := a.listAnywhere(ctx, c)
	if err == nil {
		l.State.Volumes[c.Name] = volumes
	}
	return err
}
