package volume_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

const uid = "8d5a6f3c-1f0e-4c11-9a55-0d8f6a3c1b2e"

// storage is a Backend in memory. It does everything at once, and notes what it was asked.
type storage struct {
	volumes map[string]volume.Volume
	made    int
	// start is when the first volume may have been made.
	start time.Time
	// calls are the names of the methods that were called, in their order.
	calls []string
	// before runs before a method, and an error of it is the method's. Nil lets all pass.
	before func(method string) error
	// after runs after a method that did its work, as an answer that is lost.
	after func(method string) error
	// place is which storage this is.
	place volume.Place
	// hidden is how many lists do not show what was made yet.
	hidden int
}

func newStorage() *storage { return &storage{volumes: map[string]volume.Volume{}, start: time.Now()} }

// keeper returns a Keeper over the storage, and the pauses that it made.
func (s *storage) keeper() (*volume.Keeper, *[]time.Duration) {
	pauses := &[]time.Duration{}
	return volume.NewKeeper(s, func(ctx context.Context, d time.Duration) error {
		*pauses = append(*pauses, d)
		return ctx.Err()
	}), pauses
}

// add makes a volume without the Keeper, and returns its ID.
func (s *storage) add(state volume.State, metadata map[string]string) string {
	s.made++
	id := fmt.Sprintf("v%d", s.made)
	s.volumes[id] = volume.Volume{
		ID: id, Name: "pvc-" + uid, State: state, Status: fmt.Sprintf("state-%d", state), SizeGiB: 1, Type: "plain", Metadata: metadata,
		Created: s.start.Add(time.Duration(s.made) * time.Second),
	}
	return id
}

// madeAt returns the metadata of a volume that a run asked for so long after the others began.
func (s *storage) madeAt(after time.Duration) map[string]string {
	m := ownedBy(uid)
	m["flex-provisioner.io/made-at"] = s.start.Add(after).UTC().Format(time.RFC3339Nano)
	return m
}

// edit changes a volume without a request.
func (s *storage) edit(id string, change func(*volume.Volume)) {
	v := s.volumes[id]
	change(&v)
	s.volumes[id] = v
}

func ownedBy(uid string) map[string]string { return map[string]string{volume.KeyUID: uid} }

// left lists the volumes that exist, with their states.
func (s *storage) left() string {
	var all []string
	for _, id := range slices.Sorted(maps.Keys(s.volumes)) {
		all = append(all, fmt.Sprintf("%s:%d", id, s.volumes[id].State))
	}
	return strings.Join(all, " ")
}

// do notes a call and does its work between the two hooks.
func (s *storage) do(method string, work func() error) error {
	s.calls = append(s.calls, method)
	if s.before != nil {
		if err := s.before(method); err != nil {
			return err
		}
	}
	if err := work(); err != nil || s.after == nil {
		return err
	}
	return s.after(method)
}

func (s *storage) find(id string) (volume.Volume, error) {
	v, ok := s.volumes[id]
	if !ok {
		return v, &volume.Error{Kind: volume.Gone, Doing: "get volume " + id}
	}
	return v, nil
}

func (s *storage) List(_ context.Context, f volume.Filter) (found []volume.Volume, err error) {
	err = s.do("List", func() error {
		if s.hidden > 0 && s.made > 0 {
			s.hidden--
			return nil
		}
		for _, v := range s.volumes {
			if (f.UID == "" || v.UID() == f.UID) && (f.Cluster == "" || v.Metadata[volume.KeyCluster] == f.Cluster) {
				found = append(found, v)
			}
		}
		return nil
	})
	return found, err
}

func (s *storage) ListFirst(_ context.Context, clusterUID string, most int) (found []volume.Volume, areAll bool, err error) {
	err = s.do("ListFirst", func() error {
		for _, id := range slices.Sorted(maps.Keys(s.volumes)) {
			if v := s.volumes[id]; v.Metadata[volume.KeyClusterUID] == clusterUID {
				found = append(found, v)
			}
		}
		return nil
	})
	return found[:min(most, len(found))], len(found) <= most, err
}

func (s *storage) Place() volume.Place { return s.place }

func (s *storage) Get(_ context.Context, id string) (v volume.Volume, err error) {
	err = s.do("Get", func() error { v, err = s.find(id); return err })
	return v, err
}

// TypeName knows one type by its ID.
func (s *storage) TypeName(_ context.Context, nameOrID string) (name string, err error) {
	err = s.do("TypeName", func() error {
		if name = nameOrID; nameOrID == "ID of plain" {
			name = "plain"
		}
		return nil
	})
	return name, err
}

func (s *storage) Create(_ context.Context, spec volume.Spec) (v volume.Volume, err error) {
	err = s.do("Create", func() error {
		v = s.volumes[s.add(volume.Free, maps.Clone(spec.Metadata))]
		v.Name, v.SizeGiB, v.Type, v.Origin = spec.Name, spec.SizeGiB, spec.Type, cmp.Or(spec.Source.VolumeID, spec.Source.SnapshotID)
		s.volumes[v.ID] = v
		return nil
	})
	if err != nil {
		return volume.Volume{}, err
	}
	return v, nil
}

func (s *storage) Ready(_ context.Context, v volume.Volume, _ volume.Access) (volume.Volume, error) {
	return v, s.do("Ready", func() error { return nil })
}

func (s *storage) Export(
	_ context.Context, v volume.Volume, a volume.Access,
) (c volume.Connection, _ volume.Access, err error) {
	method := "Export"
	if a.Recorded {
		method = "Look up"
	}
	err = s.do(method, func() error {
		c = volume.NewConnection("kind", []byte(`{"id":"`+v.ID+`"}`))
		a.ID = "export of " + v.ID
		return nil
	})
	return c, a, err
}

func (s *storage) Release(_ context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	err := s.do("Release "+v.ID+a.ID, func() error {
		if s.volumes[v.ID].State == volume.Occupied {
			v.State = volume.Free
			s.volumes[v.ID] = v
		}
		return nil
	})
	return v, err
}

func (s *storage) Mark(_ context.Context, v volume.Volume, metadata map[string]string) (volume.Volume, error) {
	err := s.do("Mark "+v.ID, func() error {
		v.Metadata = maps.Clone(metadata)
		s.volumes[v.ID] = v
		return nil
	})
	return v, err
}

func (s *storage) Resize(_ context.Context, v volume.Volume, gib int, _ volume.Access) (volume.Volume, error) {
	err := s.do("Resize", func() error {
		v.SizeGiB = max(v.SizeGiB, gib)
		s.volumes[v.ID] = v
		return nil
	})
	return v, err
}

func (s *storage) Delete(_ context.Context, v volume.Volume, a volume.Access) error {
	return s.do("Delete "+v.ID+a.ID, func() error {
		if _, err := s.find(v.ID); err != nil {
			return err
		}
		delete(s.volumes, v.ID)
		return nil
	})
}

// failing returns a hook that fails a method with a kind of error.
func failing(method string, kind volume.Kind) func(string) error {
	return func(called string) error {
		if called, _, _ = strings.Cut(called, " "); called != method {
			return nil
		}
		return &volume.Error{Kind: kind, Doing: method}
	}
}

func wantLeft(t *testing.T, s *storage, want string) {
	t.Helper()
	if got := s.left(); got != want {
		t.Errorf("left %q, want %q", got, want)
	}
}
