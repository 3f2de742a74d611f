package capacity_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/capacity"
)

var (
	now   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	class = capacity.Class{Name: "gold", Provisioner: "flex-provisioner.io", Namespace: "flex-provisioner"}
)

const gi = 1 << 30

func full(host string, size int64) capacity.Full {
	return capacity.Full{Host: host, Size: size, Until: now.Add(time.Minute)}
}

// admitted returns which of the nodes n1, n2 and n3 take a volume of a size.
func admitted(objects []*storagev1.CSIStorageCapacity, size int64) string {
	var out []string
	for _, node := range []string{"n1", "n2", "n3"} {
		if capacity.Admits(objects, labels.Set{corev1.LabelHostname: node}, size) {
			out = append(out, node)
		}
	}
	return strings.Join(out, " ")
}

func TestANodeIsOpenForWhatItHadRoomFor(t *testing.T) {
	past := capacity.Full{Host: "n1", Size: gi, Until: now}
	tests := map[string]struct {
		full        []capacity.Full
		objects     int
		small, same string // which nodes take a volume smaller than 2Gi, and which one of 2Gi
	}{
		"none is full":                {nil, 1, "n1 n2 n3", "n1 n2 n3"},
		"one is full":                 {[]capacity.Full{full("n1", 2*gi)}, 2, "n1 n2 n3", "n2 n3"},
		"two are full":                {[]capacity.Full{full("n3", 2*gi), full("n1", 2*gi)}, 3, "n1 n2 n3", "n2"},
		"the least that did not fit":  {[]capacity.Full{full("n1", 2*gi), full("n1", gi), full("n1", 3*gi)}, 2, "n2 n3", "n2 n3"},
		"more did not fit":            {[]capacity.Full{full("n1", 3*gi)}, 2, "n1 n2 n3", "n1 n2 n3"},
		"all are full":                {[]capacity.Full{full("n1", gi), full("n2", gi), full("n3", gi)}, 4, "", ""},
		"its time is over":            {[]capacity.Full{past}, 1, "n1 n2 n3", "n1 n2 n3"},
		"one time is over, one not":   {[]capacity.Full{past, full("n1", 2*gi)}, 2, "n1 n2 n3", "n2 n3"},
		"a volume without a size":     {[]capacity.Full{full("n1", 0)}, 2, "n2 n3", "n2 n3"},
		"another node than these":     {[]capacity.Full{full("n4", gi)}, 2, "n1 n2 n3", "n1 n2 n3"},
		"the least after the largest": {[]capacity.Full{full("n2", 5*gi), full("n2", 2*gi)}, 2, "n1 n2 n3", "n1 n3"},
	}
	for name, tt := range tests {
		objects := capacity.Wanted(class, tt.full, now)
		if len(objects) != tt.objects {
			t.Errorf("%s: %d objects, want %d", name, len(objects), tt.objects)
		}
		if got := admitted(objects, 2*gi-1); got != tt.small {
			t.Errorf("%s: a smaller volume goes to %q, want %q", name, got, tt.small)
		}
		if got := admitted(objects, 2*gi); got != tt.same {
			t.Errorf("%s: the volume goes to %q, want %q", name, got, tt.same)
		}
	}
}

// A full node costs three writes, and so does one that is opened again.
func TestAFullNodeCostsThreeWrites(t *testing.T) {
	none, one := capacity.Wanted(class, nil, now), capacity.Wanted(class, []capacity.Full{full("n1", gi)}, now)
	two := capacity.Wanted(class, []capacity.Full{full("n1", gi), full("n2", gi)}, now)
	for name, step := range map[string][2][]*storagev1.CSIStorageCapacity{
		"the first is full": {none, one}, "the second is full": {one, two}, "the second is open": {two, one}, "the first is open": {one, none},
	} {
		if missing, surplus := capacity.Compare(step[1], step[0]); len(missing)+len(surplus) != 3 {
			t.Errorf("%s: %d objects are created and %d deleted", name, len(missing), len(surplus))
		}
	}
	for _, same := range [][]*storagev1.CSIStorageCapacity{none, one, two} {
		if missing, surplus := capacity.Compare(same, same); len(missing)+len(surplus) != 0 {
			t.Errorf("nothing has changed, and %d objects are created and %d deleted", len(missing), len(surplus))
		}
	}
}

// At no moment between the writes a node is closed that is open before and after, or the scheduler would hold up pods.
func TestWhileObjectsAreReplacedNoOpenNodeIsClosed(t *testing.T) {
	before, after := capacity.Wanted(class, nil, now), capacity.Wanted(class, []capacity.Full{full("n1", gi)}, now)
	missing, surplus := capacity.Compare(after, before)
	objects := slices.Clone(before)
	for _, obj := range missing {
		objects = append(objects, obj)
		if got := admitted(objects, gi); got != "n1 n2 n3" {
			t.Errorf("with %d objects the volume goes to %q", len(objects), got)
		}
	}
	objects = slices.DeleteFunc(objects, func(o *storagev1.CSIStorageCapacity) bool { return o.Name == surplus[0].Name })
	if got := admitted(objects, gi); got != "n2 n3" {
		t.Errorf("in the end the volume goes to %q", got)
	}
}

// The order in which runs are read must not make other objects.
func TestObjectsDoNotDependOnTheOrderOfRuns(t *testing.T) {
	names := func(full ...capacity.Full) string {
		var out []string
		for _, o := range capacity.Wanted(class, full, now) {
			out = append(out, o.Name)
		}
		return fmt.Sprint(out)
	}
	if a, b := names(full("n1", gi), full("n2", 2*gi)), names(full("n2", 2*gi), full("n1", gi)); a != b {
		t.Errorf("%s and %s", a, b)
	}
	other := class
	other.Name = "silver"
	if capacity.Wanted(class, nil, now)[0].Name == capacity.Wanted(other, nil, now)[0].Name {
		t.Error("two classes share a name")
	}
}

func TestTheDriverIsNoRealOne(t *testing.T) {
	d := capacity.Driver("flex-provisioner.io")
	if *d.Spec.AttachRequired || *d.Spec.PodInfoOnMount || !capacity.IsPublishing(d) || !capacity.IsOurs(d) || d.Name != "flex-provisioner.io" {
		t.Errorf("the driver is %+v", d)
	}
	if foreign := (&storagev1.CSIDriver{}); capacity.IsOurs(foreign) || capacity.IsPublishing(foreign) {
		t.Error("a driver of others is taken for ours")
	}
}
