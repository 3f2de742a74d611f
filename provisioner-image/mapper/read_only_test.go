package mapper_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
)

// Nodes read neither readOnly of a source nor, but for one driver, access modes: only mount options
// keep them from writing. "ro" is an element of its own, also where the class has it inside another.
func TestNodesDoNotWriteToAVolumeThatIsOnlyToBeRead(t *testing.T) {
	readOnly := map[string]any{"access_mode": "ro"}
	tests := map[string]struct {
		from   string
		change map[string]any
		edit   func(*mapper.Want)
		want   []string
	}{
		"one node writes":                 {"iscsi", nil, nil, []string{"noatime"}},
		"iscsi, many read xfs":            {"iscsi", nil, readers, []string{"noatime", "nouuid", "ro", "norecovery"}},
		"iscsi, one node writes a clone":  {"iscsi", nil, func(w *mapper.Want) { w.Filled = true }, []string{"noatime", "nouuid"}},
		"iscsi, marked by the storage":    {"iscsi", readOnly, nil, []string{"noatime", "ro", "norecovery"}},
		"fc, many read ext4":              {"fibre-channel", nil, onFileSystem("ext4"), []string{"noatime", "ro", "noload"}},
		"fc, marked by the storage":       {"fibre-channel", readOnly, nil, []string{"noatime", "ro", "norecovery"}},
		"fc, many read the default":       {"fibre-channel", nil, onFileSystem(""), []string{"noatime", "ro", "noload"}},
		"fc, many read ext3":              {"fibre-channel", nil, onFileSystem("ext3"), []string{"noatime", "ro", "noload"}},
		"fc, many read btrfs":             {"fibre-channel", nil, onFileSystem("btrfs"), []string{"noatime", "ro", "norecovery"}},
		"fc, a file system of no journal": {"fibre-channel", nil, onFileSystem("vfat"), []string{"noatime", "ro"}},
		"rbd, many read":                  {"rbd", nil, readers, []string{"noatime", "nouuid", "ro", "norecovery"}},
		"rbd, marked by the storage":      {"rbd", readOnly, nil, []string{"noatime", "ro", "norecovery"}},
		"nvme, marked by the storage":     {"nvmeof", readOnly, subsystemsVolume, []string{"noatime", "ro", "norecovery"}},
		"a class that has them":           {"fibre-channel", nil, withOptions("norecovery", "ro", "nouuid"), []string{"norecovery", "ro", "nouuid"}},
		"a class that has ro in another":  {"fibre-channel", nil, withOptions("noatime,ro"), []string{"noatime,ro", "nouuid", "ro", "norecovery"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := want()
			ceph(&w)
			w.Initiator, w.MountOptions = "", []string{"noatime"}
			if tc.edit != nil {
				tc.edit(&w)
			}
			m, err := mapper.Map(capture(t, tc.from, tc.change), w)
			if err != nil || !slices.Equal(m.MountOptions, tc.want) {
				t.Errorf("nodes mount it by %v, want %v; %v", m.MountOptions, tc.want, err)
			}
		})
	}
}

func onFileSystem(name string) func(*mapper.Want) {
	return func(w *mapper.Want) { readers(w); w.FSType = name }
}

func withOptions(options ...string) func(*mapper.Want) {
	return func(w *mapper.Want) { readers(w); w.MountOptions = options }
}

// What the storage marks as read-only is refused where nothing keeps a node from writing to it.
func TestAVolumeThatIsMarkedReadOnlyIsRefusedWhereNodesWouldWrite(t *testing.T) {
	block := func(w *mapper.Want) { w.VolumeMode = corev1.PersistentVolumeBlock }
	for name, tc := range map[string]struct {
		from   string
		edit   func(*mapper.Want)
		reason string
	}{
		"iscsi":      {"iscsi", block, "raw device"},
		"fc":         {"fibre-channel", block, "raw device"},
		"rbd":        {"rbd", block, "raw device"},
		"nvme":       {"nvmeof", func(w *mapper.Want) { block(w); subsystemsVolume(w) }, "raw device"},
		"flexVolume": {"nfs", func(w *mapper.Want) { w.FlexDriver = "example.com/any" }, "FlexVolume driver"},
	} {
		w := want()
		ceph(&w)
		tc.edit(&w)
		_, err := mapper.Map(capture(t, tc.from, map[string]any{"access_mode": "ro"}), w)
		u, ok := errors.AsType[*mapper.UnsupportedError](err)
		if !ok || !u.Claim || !strings.Contains(u.Reason, tc.reason) || !strings.Contains(u.Reason, "--read-write") {
			t.Errorf("%s: got %v, want %q", name, err, tc.reason)
		}
	}
}
