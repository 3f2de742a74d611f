package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
)

const (
	ownCluster = "c-1"
	leftUID    = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f51"
	oddUID     = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f52"
	leftID     = "5d1f0b6e-0b1c-4c8e-9a57-2d3e4f506071"
)

// abandoned is a state in which a volume of this cluster stands for nothing.
func abandoned(changes ...func(*audit.State)) audit.State {
	s := healthy()
	s.ClusterUID = ownCluster
	s.Volumes["gold"] = append(s.Volumes["gold"], audit.Volume{UID: leftUID, Volume: leftID, ClusterUID: ownCluster, Class: "gold"})
	for _, change := range changes {
		change(&s)
	}
	return s
}

// last changes the volume that stands for nothing.
func last(change func(*audit.Volume)) func(*audit.State) {
	return func(s *audit.State) { change(&s.Volumes["gold"][1]) }
}

// byHand is a PV of an administrator with the volume in its volume source.
func byHand(s *audit.State) {
	s.Others = append(s.Others, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{IQN: "iqn.2010-10.org.openstack:volume-" + leftID}},
	}})
}

func TestVolumesAreJudgedByTheirCluster(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		state audit.State
		want  []audit.Kind
		fix   string
	}{
		"this cluster's":             {abandoned(), []audit.Kind{audit.VolumeLeft}, "--storage=gold --fix=" + leftID},
		"another cluster's":          {abandoned(last(func(v *audit.Volume) { v.ClusterUID = "c-2" })), nil, ""},
		"without a mark":             {abandoned(last(func(v *audit.Volume) { v.ClusterUID = "" })), []audit.Kind{audit.VolumeLeft}, "in the storage"},
		"of a cluster without a UID": {abandoned(func(s *audit.State) { s.ClusterUID = "" }), []audit.Kind{audit.VolumeLeft}, "in the storage"},
		"its UID is none":            {abandoned(last(func(v *audit.Volume) { v.UID = "left" })), []audit.Kind{audit.VolumeLeft}, "in the storage"},
		"a PV by hand stands for it": {abandoned(byHand), nil, ""},
		"a PV by hand is reserved for its claim's name": {abandoned(last(func(v *audit.Volume) { v.Namespace, v.Name = "app", "old" }), func(s *audit.State) {
			s.Others = append(s.Others, &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "old"}}})
		}), nil, ""},
		"another cluster's of a claim": {abandoned(last(func(v *audit.Volume) { v.UID, v.ClusterUID = uid, "c-2" })), nil, ""},
		"a second one of a claim":      {abandoned(last(func(v *audit.Volume) { v.UID = uid })), []audit.Kind{audit.VolumeTwice, audit.VolumeTwice}, "in the storage"},
		"only another cluster's of a claim": {abandoned(func(s *audit.State) {
			s.Volumes["gold"] = []audit.Volume{{UID: uid, Volume: "v1", ClusterUID: "c-2"}}
		}), []audit.Kind{audit.VolumeMissing}, "describe"},
		"listed by two classes": {abandoned(func(s *audit.State) { s.Volumes["silver"] = s.Volumes["gold"] }), []audit.Kind{audit.VolumeLeft}, "--storage=gold"},
	} {
		var kinds []audit.Kind
		for _, f := range audit.Check(test.state) {
			kinds = append(kinds, f.Kind)
			if !strings.Contains(f.Fix, test.fix) {
				t.Errorf("%s: fixed by %q, want %q", name, f.Fix, test.fix)
			}
		}
		if !slices.Equal(kinds, test.want) {
			t.Errorf("%s: found %v, want %v", name, kinds, test.want)
		}
	}
}

// A storage may name volumes of another one, and its list comes first: it hides none of the other's
// findings, and no command deletes one of them by its list.
func TestAListReachesNoVolumeOfAnotherStorage(t *testing.T) {
	t.Parallel()
	own := audit.Volume{UID: leftUID, Volume: leftID, ClusterUID: ownCluster, Class: "gold"}
	command := "kubectl flex audit --storage=gold --fix=" + leftID + "  # unless it is kept on purpose"
	for name, test := range map[string]struct {
		forged audit.Volume
		found  int // with the own one
	}{
		"the same":               {own, 1},
		"of another claim":       {audit.Volume{UID: "another", Volume: leftID, ClusterUID: ownCluster, Class: "gold"}, 2},
		"of no class":            {audit.Volume{UID: leftUID, Volume: leftID, ClusterUID: ownCluster}, 2},
		"of the first's class":   {audit.Volume{UID: leftUID, Volume: leftID, ClusterUID: ownCluster, Class: "evil"}, 2},
		"that the other has not": {audit.Volume{UID: leftUID, Volume: "v2", ClusterUID: ownCluster, Class: "gold"}, 2},
	} {
		found := audit.Check(abandoned(func(s *audit.State) { s.Volumes["evil"] = []audit.Volume{test.forged} }))
		if len(found) != test.found {
			t.Errorf("%s: found %+v", name, found)
		}
		commands := 0
		for _, f := range found {
			if f.ListedBy == "gold" && (f.Volume != own || f.Fix != command) || f.ListedBy == "evil" && f.Volume.Class != "evil" && strings.Contains(f.Fix, "--fix") {
				t.Errorf("%s: found %+v", name, f)
			}
			if f.ListedBy == "gold" {
				commands++
			}
		}
		if commands != 1 {
			t.Errorf("%s: %d findings of the other storage", name, commands)
		}
	}
}

// A storage that names a volume in an odd way hides no other finding, and its name stands in no
// command. What --fix would read as another name, or as all, is not named to it; every other name
// is one word of the command.
func TestAnOddNameOfAVolumeIsQuotedAndHidesNothing(t *testing.T) {
	t.Parallel()
	for name, fix := range map[string]string{
		"x; touch PWNED #":  `kubectl flex audit --storage=gold '--fix=x; touch PWNED #'  # unless it is kept on purpose`,
		"$(touch PWNED)":    `kubectl flex audit --storage=gold '--fix=$(touch PWNED)'  # unless it is kept on purpose`,
		"x\x1b[31m\a":       `kubectl flex audit --storage=gold $'--fix=x\033[31m\007'  # unless it is kept on purpose`,
		"*":                 `delete the volume * in the storage, if it is neither in use nor another cluster's`,
		"v1," + leftID:      `delete the volume v1,` + leftID + ` in the storage, if it is neither in use nor another cluster's`,
		"v1\nSecretLeft: x": `delete the volume "v1\nSecretLeft: x" in the storage, if it is neither in use nor another cluster's`,
		`"v1"`:              `delete the volume "\"v1\"" in the storage, if it is neither in use nor another cluster's`,
	} {
		found := audit.Check(abandoned(func(s *audit.State) {
			s.Volumes["gold"] = append(s.Volumes["gold"], audit.Volume{UID: oddUID, Volume: name, ClusterUID: ownCluster, Class: "gold"})
		}))
		at := slices.IndexFunc(found, func(f audit.Finding) bool { return f.UID == oddUID })
		if len(found) != 2 || at < 0 {
			t.Errorf("%q: found %+v", name, found)
			continue
		}
		if found[at].Fix != fix {
			t.Errorf("%q: fixed by %s, want %s", name, found[at].Fix, fix)
		}
		if text := found[at].Object + found[at].Why; strings.ContainsFunc(text, unicode.IsControl) {
			t.Errorf("%q: the finding is %q", name, text)
		}
	}
}

func TestAVolumeIsAsOldAsItsStorageSays(t *testing.T) {
	t.Parallel()
	for created, want := range map[string]time.Duration{
		"2026-01-01T11:00:00Z": time.Hour, "2026-01-01T12:30:00.5+01:00": 29*time.Minute + 59500*time.Millisecond, "": 0, "yesterday": 0, "2026-01-01T12:01:00Z": 0,
	} {
		found := audit.Check(abandoned(last(func(v *audit.Volume) { v.CreatedAt = created })))
		if len(found) != 1 || found[0].Age != want {
			t.Errorf("created at %q: %+v, want %s", created, found, want)
		}
	}
}

// While a storage is listed, volumes are made and deleted.
func TestAVolumeIsAFindingOnlyIfItIsOneBeforeAndAfterTheList(t *testing.T) {
	t.Parallel()
	deleted := healthy()
	deleted.Claims, deleted.PVs, deleted.Secrets = nil, nil, nil
	if found := audit.CheckAround(healthy(), deleted); len(found) > 0 {
		t.Errorf("a volume that was deleted meanwhile: %+v", found)
	}
	before, after := healthy(), healthy()
	before.Claims, before.PVs, before.Secrets, after.Volumes = nil, nil, nil, map[string][]audit.Volume{"gold": {}}
	if found := audit.CheckAround(before, after); len(found) > 0 {
		t.Errorf("a volume that was made meanwhile: %+v", found)
	}
	if found := audit.CheckAround(abandoned(), abandoned()); len(found) != 1 || found[0].Kind != audit.VolumeLeft {
		t.Errorf("one that stands for nothing: %+v", found)
	}
	if found := audit.CheckAround(healthy(), healthy()); len(found) > 0 {
		t.Errorf("a healthy cluster: %+v", found)
	}
}

// A thousand PVs and as many volumes are compared in a moment: what a PV has is encoded once.
func TestTheSourceOfAPVIsEncodedOnceForAllVolumes(t *testing.T) { //nolint:paralleltest // it counts allocations
	const many = 100
	allocated := func(volumes int) float64 {
		s := audit.State{Now: now, ClusterUID: ownCluster, Volumes: map[string][]audit.Volume{}}
		for range many {
			byHand(&s)
		}
		for i := range volumes {
			s.Volumes["gold"] = append(s.Volumes["gold"], audit.Volume{UID: fmt.Sprint(i), Volume: fmt.Sprintf("volume-%d", 1000+i), ClusterUID: ownCluster})
		}
		return testing.AllocsPerRun(3, func() { audit.Check(s) })
	}
	if more := allocated(many) - allocated(0); more > many*many/2 {
		t.Errorf("%d volumes beside %d PVs take %.0f allocations more than none", many, many, more)
	}
}

func TestAFindingIsNewOnce(t *testing.T) {
	t.Parallel()
	one, two := audit.Finding{Kind: audit.VolumeLeft, Object: "volume a", Why: "then"}, audit.Finding{Kind: audit.VolumeTwice, Object: "volume a"}
	again := one
	again.Why, again.Age = "now", 1
	other := one
	other.Class = "another storage"
	if got := audit.New([]audit.Finding{again, two, other}, []audit.Finding{one}); !slices.Equal(got, []audit.Finding{two, other}) {
		t.Errorf("%+v", got)
	}
}
