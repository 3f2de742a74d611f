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
	volumes := map[string][]audit.Volume{}
	maps.Copy(volumes, of.Files)
	if of.All || len(of.Classes) > 0 {
		if err := a.listAll(ctx, of.Classes, &l, volumes); err != nil {
			return l, err
		}
		if l.State, err = a.ReadState(ctx); err != nil {
			return l, err
		}
	}
	l.State.Volumes = volumes
	l.Found = audit.CheckAround(before, l.State)
	return l, ctx.Err()
}

// listAll lists the storages of classes, one after the other.
func (a *Auditor) listAll(ctx context.Context, names []string, l *Look, volumes map[string][]audit.Volume) error {
	classes, err := a.Classes(ctx, names...)
	if err != nil {
		return err
	}
	for _, c := range classes {
		if err = c.Fault; err == nil {
			volumes[c.Name], err = a.List(ctx, c)
		}
		switch {
		case err == nil:
			continue
		case len(names) == 0 && errors.Is(err, errUnlisted):
			l.Notes = append(l.Notes, fmt.Errorf("class %s: %w", c.Name, err))
		default:
			l.Faults = append(l.Faults, fmt.Errorf("class %s: %w", c.Name, err))
		}
		delete(volumes, c.Name)
	}
	return nil
}
