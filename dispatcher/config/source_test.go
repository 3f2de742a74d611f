package config_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

func TestSourceOfFillsInKubernetesDefaults(t *testing.T) {
	cm := configMap("gold", nil, map[string]string{"image": "x"})
	bare := &storagev1.StorageClass{}
	bare.Name = "gold"
	got := config.SourceOf(cm, bare)
	if got.Reclaim != "Delete" || got.Binding != "Immediate" {
		t.Errorf("got %s and %s, want Delete and Immediate", got.Reclaim, got.Binding)
	}
	full := class("gold", corev1.PersistentVolumeReclaimRetain)
	full.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	if got := config.SourceOf(cm, full); got.Reclaim != "Retain" || got.Binding != "WaitForFirstConsumer" {
		t.Errorf("got %s and %s", got.Reclaim, got.Binding)
	}
}

func TestConfigNamespaceOfAClassIsNoProperty(t *testing.T) {
	sc := class("gold", corev1.PersistentVolumeReclaimRetain)
	sc.Parameters = map[string]string{contract.ParamConfigNamespace: "elsewhere", "pool": "fast"}
	got := config.SourceOf(configMap("gold", nil, nil), sc)
	if want := map[string]string{"pool": "fast"}; !reflect.DeepEqual(got.Parameters, want) {
		t.Errorf("parameters %v, want %v", got.Parameters, want)
	}
	if len(sc.Parameters) != 2 {
		t.Error("the class itself was changed: it lies in a shared cache")
	}
	if ns := config.NamespaceFor(sc, "own"); ns != "elsewhere" {
		t.Errorf("namespace %s", ns)
	}
	if ns := config.NamespaceFor(class("gold", ""), "own"); ns != "own" {
		t.Errorf("namespace %s, want the dispatcher's --namespace", ns)
	}
}

func TestEncodedSourcesDecodeToThemselves(t *testing.T) {
	want := broken()
	got, err := config.DecodeSource(want.Encode())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	if _, err := config.DecodeSource([]byte(`{"data": 1}`)); err == nil {
		t.Error("a damaged revision was accepted")
	}
}

func TestRevisionNameDependsOnAllContent(t *testing.T) {
	base := source(param("pool", "fast"))
	name := base.RevisionName()
	if again := source(param("pool", "fast")); again.RevisionName() != name {
		t.Errorf("the same content is named %s and %s", name, again.RevisionName())
	}
	changes := map[string]func(*config.Source){
		"a key's value":     set("image", "localhost/gold:v2"),
		"a new key":         set("zone", "west"),
		"a key less":        set("service-account-name", ""),
		"a parameter":       param("pool", "slow"),
		"a new parameter":   param("zone", "west"),
		"the reclaimPolicy": reclaim("Delete"),
		"the binding mode":  binding("WaitForFirstConsumer"),
		"the class":         func(s *config.Source) { s.Class = "silver" },
		"the namespace":     func(s *config.Source) { s.Namespace = "other" },
	}
	seen := map[string]string{name: "nothing"}
	for what, change := range changes {
		got := source(param("pool", "fast"), change).RevisionName()
		if other, taken := seen[got]; taken {
			t.Errorf("%s changes: the name %s is the one for a change of %s", what, got, other)
		}
		seen[got] = what
	}
	if got := base.Revision(); got != "flex-provisioner/"+name {
		t.Errorf("Revision() = %s", got)
	}
}

// The container sees no difference, but the key moved from the ConfigMap to the class.
func TestRevisionNameTellsDataFromParameters(t *testing.T) {
	if source(set("pool", "x")).RevisionName() == source(param("pool", "x")).RevisionName() {
		t.Error("one name for two contents")
	}
}

func TestRevisionNamesAndClassLabelsAreValid(t *testing.T) {
	for _, name := range []string{"a", strings.Repeat("long.name", 28) + "x", strings.Repeat("a", 253), strings.Repeat("a", 235) + ".end-of-the-name"} {
		s := source(func(s *config.Source) { s.Name = name })
		if faults := validation.IsDNS1123Subdomain(s.RevisionName()); len(faults) > 0 {
			t.Errorf("the revision of %q: %v", name, faults)
		}
		if faults := validation.IsValidLabelValue(config.ClassLabel(name)); len(faults) > 0 {
			t.Errorf("the label of the class %q: %v", name, faults)
		}
	}
	if config.ClassLabel("gold") == config.ClassLabel("silver") {
		t.Error("two classes, one label")
	}
}

func TestAConfigListsTheClassesThatMayNameIt(t *testing.T) {
	for classes, want := range map[string]bool{
		"":                 false,
		"gold":             true,
		"silver,gold":      true,
		" silver ,\tgold ": true,
		"silver\ngold\n":   true,
		"silver gold":      true,
		"*":                true,
		"silver, *":        true,
		"silver":           false,
		"golden,old,g*":    false,
		"silver;gold":      false,
	} {
		if got := config.Lists(configMap("shared", nil, map[string]string{"classes": classes}), "gold"); got != want {
			t.Errorf("%q lists gold: %t, want %t", classes, got, want)
		}
	}
}

func TestAConfigAdmitsTheNamespacesThatItLists(t *testing.T) {
	for list, want := range map[string]bool{
		"":                false,
		" , ":             false,
		"team-a":          true,
		"ci-1,team-a":     true,
		"ci-1\tteam-a\n":  true,
		"team-*":          true,
		"ci-*, team*":     true,
		"*":               true,
		"team":            false,
		"team-a-1":        false,
		"eam-a,*-a,Team*": false,
		"team-a;team-b":   false,
	} {
		if got := config.Admits(configMap("shared", nil, map[string]string{"namespaces": list}), "team-a"); got != want {
			t.Errorf("%q admits team-a: %t, want %t", list, got, want)
		}
	}
	if config.Admits(configMap("shared", nil, map[string]string{"namespaces": strings.Repeat("team-a,", 1<<14)}), "team-a") {
		t.Error("a list that is too long admits a namespace")
	}
	if !config.Admits(configMap("shared", nil, nil), "team-a") {
		t.Error("a config without the list admits no namespace")
	}
}

func TestAListThatNamesNoNamespaceIsAFault(t *testing.T) {
	for list, want := range map[string]string{
		"team-a, ci-*, *":                "",
		"":                               "the config serves no claim",
		"team-a, Team_B":                 "no namespace has such a name",
		"*-a":                            "no namespace has such a name",
		"a;b":                            "no namespace has such a name",
		strings.Repeat("team-a,", 1<<14): "Too long: may not be more than 16384 bytes",
	} {
		faults := config.NamespacesFaults(configMap("shared", nil, map[string]string{"namespaces": list}))
		if says := fmt.Sprint(faults.ToAggregate()); (want == "") != (len(faults) == 0) || !strings.Contains(says, want) {
			t.Errorf("%q: %s", list, says)
		}
	}
}

// Of data that are too large, the lists are kept: a config must not serve more namespaces than
// before.
func TestTheListsOfDataThatAreTooLargeAreKept(t *testing.T) {
	long := strings.Repeat("team-a,", 1<<14)
	for name, test := range map[string]struct{ data, want map[string]string }{
		"none":     {map[string]string{"image": "x"}, map[string]string{}},
		"both":     {map[string]string{"image": "x", "classes": "gold", "namespaces": "a"}, map[string]string{"classes": "gold", "namespaces": "a"}},
		"too long": {map[string]string{"classes": long, "namespaces": long}, map[string]string{"classes": "", "namespaces": ""}},
	} {
		if got := config.OnlyLists(test.data); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Who is served says nothing of how: when a class or a namespace is added, the others keep their
// revisions.
func TestTheListsAndTheParameterAreNoPartOfASource(t *testing.T) {
	sc := class("gold", corev1.PersistentVolumeReclaimRetain)
	before := config.SourceOf(configMap("shared", nil, map[string]string{"image": "x"}), sc)
	sc.Parameters = map[string]string{contract.ParamConfig: "shared"}
	if name := config.NameFor(sc); name != "shared" {
		t.Errorf("the class names %q", name)
	}
	cm := configMap("shared", nil, map[string]string{"image": "x", "classes": "gold", "namespaces": "team-a"})
	if after := config.SourceOf(cm, sc); after.RevisionName() != before.RevisionName() {
		t.Errorf("another revision: %+v, and before %+v", after, before)
	}
	if moved := before.From(cm); moved.RevisionName() != before.RevisionName() {
		t.Errorf("another revision: %+v", moved)
	}
	if cm.Data["classes"] != "gold" {
		t.Error("the ConfigMap itself was changed: it lies in a shared cache")
	}
}
