package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestPVMayStandForAVolumeByItsSource(t *testing.T) {
	t.Parallel()
	const id = "5d1f0b6e-9a57-4c8e-8f4e-0b1c2d3e4f50"
	for name, test := range map[string]struct {
		source corev1.PersistentVolumeSource
		volume string
		want   bool
	}{
		"part of an iSCSI name": {corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{IQN: "iqn.2010-10.org.openstack:volume-" + id}}, id, true},
		"a CSI handle":          {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: id}}, id, true},
		"in other letters":      {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: "5D1F0B6E-9a57-4c8e-8f4e-0b1c2d3e4f50"}}, id, true},
		"a path":                {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/pvc-" + id}}, "pvc-" + id, true},
		"an absolute path":      {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/pvc-" + id}}, "/export/pvc-" + id, true},
		"a directory":           {corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/srv/pvc-" + id + "/data"}}, "/srv/pvc-" + id + "/", true},
		"behind an underscore":  {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: "volume_" + id}}, id, true},
		"what JSON escapes":     {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/r&d/pvc-" + id}}, "r&d/pvc-" + id, true},
		"beside an escape":      {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/<" + id + ">a"}}, "<" + id + ">", true},
		"in a longer word":      {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: id + "0"}}, id, false},
		"a longer word first":   {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/" + id + "0/" + id}}, id, true},
		"another volume":        {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/volume-10"}}, "volume-1", false},
		"no words":              {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/--------"}}, "--------", false},
		"no name of length":     {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/7"}}, "7", false},
		"no source":             {corev1.PersistentVolumeSource{}, id, false},
	} {
		if got := holdersOf([]*corev1.PersistentVolume{{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: test.source}}}).mayStandFor(Volume{UID: "u", Volume: test.volume}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestPVMayStandForAVolumeByItsClaim(t *testing.T) {
	t.Parallel()
	volume := Volume{UID: "u", Volume: "v1", Namespace: "app", Name: "data"}
	for name, test := range map[string]struct {
		uid  string // in its annotation
		ref  *corev1.ObjectReference
		want bool
	}{
		"it carries the UID":              {"u", nil, true},
		"its claimRef has the UID":        {"", &corev1.ObjectReference{Namespace: "app", Name: "other", UID: "u"}, true},
		"it is reserved for the name":     {"", &corev1.ObjectReference{Namespace: "app", Name: "data"}, true},
		"a later claim of the name":       {"w", &corev1.ObjectReference{Namespace: "app", Name: "data", UID: "w"}, false},
		"the name in another namespace":   {"", &corev1.ObjectReference{Namespace: "shop", Name: "data"}, false},
		"it names no claim and no volume": {"", nil, false},
	} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{contract.AnnClaimUID: test.uid}}, Spec: corev1.PersistentVolumeSpec{ClaimRef: test.ref}}
		if got := holdersOf([]*corev1.PersistentVolume{pv}).mayStandFor(volume); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A storage that lists names which stand in every volume source once held up the audit of all classes
// for minutes.
func TestNamesThatManySourcesContainAreLookedForInFew(t *testing.T) {
	t.Parallel()
	var pvs []*corev1.PersistentVolume
	for i := range 10_000 {
		path := fmt.Sprintf("/export/volumes/pvc-6f0c3b1e-2d4a-4c8e-9a57-%012x", i)
		pvs = append(pvs, &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: path}}}})
	}
	h, start := holdersOf(pvs), time.Now()
	for i := range 5000 {
		if !h.mayStandFor(Volume{UID: "u", Volume: fmt.Sprintf("export-volumes-%s", strings.Repeat("pvc-", i%100))}) {
			t.Fatal("a name of words that all sources have is not taken for one of theirs")
		}
		if h.mayStandFor(Volume{UID: "u", Volume: fmt.Sprintf("%08d", i)}) {
			t.Fatal("a name is found that no source has")
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("10,000 names were looked for in 10,000 sources in %s", took)
	}
}
