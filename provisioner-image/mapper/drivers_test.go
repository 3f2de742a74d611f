package mapper_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// driver is a connection as some of Cinder's drivers describe it, and what becomes of it.
type driver struct {
	Drivers []string
	// Read is where the connection is built.
	Read, Kind string
	Data       map[string]any
	// Maps is the source in short, Refused why there is none, and Warns what it cannot use.
	Maps, Refused, Warns string
	// OneName says that nodes may also share one initiator name.
	OneName bool
}

// table has the connections, and the files that send none of their own, each with the reason.
type table struct {
	Rows    []driver
	Without map[string]string
}

func drivers(t *testing.T) table {
	t.Helper()
	data, err := os.ReadFile("testdata/drivers/rows.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all table
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// What each driver of Cinder sends is mapped to a source or refused with a reason, and what the
// source cannot use is said.
func TestConnectionOfEveryDriverOfCinder(t *testing.T) {
	for _, row := range drivers(t).Rows {
		t.Run(strings.Join(row.Drivers, " ")+" "+row.Read, func(t *testing.T) {
			c := volume.NewConnection(row.Kind, encoded(t, row.Data))
			w := want()
			ceph(&w)
			w.Initiator = ""
			ports(4, "true")(&w)
			m, err := mapper.Map(c, w)
			if err != nil {
				if row.Refused == "" || !strings.Contains(err.Error(), row.Refused) {
					t.Errorf("refused by %q, want %q", err, row.Refused)
				}
				return
			}
			if got := inShort(m.Source); got != row.Maps || row.Refused != "" {
				t.Errorf("mapped to %q, want %q%s", got, row.Maps, row.Refused)
			}
			if got := strings.Join(m.Warnings, "; "); (got == "") != (row.Warns == "") || !strings.Contains(got, row.Warns) {
				t.Errorf("warned %q, want %q", got, row.Warns)
			}
			w.Initiator = "iqn.2026-11.io.example:nodes"
			if _, err := mapper.Map(c, w); row.Kind == "iscsi" && (err == nil) != row.OneName {
				t.Errorf("by one initiator name: %v", err)
			}
		})
	}
}

// inShort returns what names the volume in a source.
func inShort(s corev1.PersistentVolumeSource) string {
	switch {
	case s.ISCSI != nil:
		return strings.Join(append([]string{"iscsi", s.ISCSI.TargetPortal}, s.ISCSI.Portals...), " ") + lunOf(s.ISCSI.Lun)
	case s.FC != nil && s.FC.Lun == nil:
		return "fc wwid " + strings.Join(s.FC.WWIDs, " ")
	case s.FC != nil:
		return "fc " + strings.Join(s.FC.TargetWWNs, " ") + lunOf(*s.FC.Lun)
	case s.CSI != nil:
		return strings.TrimSpace(s.CSI.Driver + " " + s.CSI.VolumeAttributes["targetTrAddr"])
	default:
		return "something else"
	}
}

// A driver without a row, such as one of a newer Cinder, is found here.
func TestEveryDriverOfCinderHasARowOrAReason(t *testing.T) {
	list, err := os.ReadFile("testdata/drivers/files.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := drivers(t)
	var covered []string
	for _, row := range all.Rows {
		covered = append(covered, row.Drivers...)
	}
	var files []string
	for line := range strings.Lines(string(list)) {
		file := strings.TrimSpace(line)
		if strings.HasPrefix(file, "#") {
			continue
		}
		files = append(files, file)
		if slices.Contains(covered, file) == (all.Without[file] != "") {
			t.Errorf("%s must have a row or a reason why it has none", file)
		}
	}
	for _, file := range covered {
		if !slices.Contains(files, file) {
			t.Errorf("a row names %s, which is not in the list", file)
		}
	}
	for file := range all.Without {
		if !slices.Contains(files, file) {
			t.Errorf("%s has a reason, and is not in the list", file)
		}
	}
}

func lunOf(lun int32) string { return fmt.Sprintf(" lun %d", lun) }
