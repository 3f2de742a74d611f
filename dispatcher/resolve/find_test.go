package resolve

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// finding returns a Resolver of these objects and of the ServiceAccount nfs.
func finding(t *testing.T, objects ...metav1.Object) *Resolver {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "nfs", Labels: map[string]string{contract.LabelProvisioner: "true"}}}
	caches, err := cluster.NewStatic(nil, []string{"flex-provisioner", "team"}, append(objects, account)...)
	if err != nil {
		t.Fatal(err)
	}
	return &Resolver{Caches: caches, Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespace: "flex-provisioner", Judged: &Judged{}}
}

// named returns a ConfigMap of another name.
func named(name, label, classes, image string) *corev1.ConfigMap {
	cm, _ := configOf(image)
	if cm.Name = name; classes != "" {
		cm.Data["classes"] = classes
	}
	cm.Labels = map[string]string{contract.LabelType: contract.TypeConfig, contract.LabelStorageClass: label}
	return cm
}

// storedAs returns the revision of a ConfigMap and a class, with a number.
func storedAs(number int64, cm *corev1.ConfigMap, class *storagev1.StorageClass) *appsv1.ControllerRevision {
	src := config.SourceOf(cm, class)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: src.Namespace, Name: src.RevisionName()}, Data: runtime.RawExtension{Raw: src.Encode()}, Revision: number,
	}
}

// A class may have been created anew with the name of another ConfigMap: the earlier one has not
// consented to serve it still.
func TestTheLastGoodRevisionIsOfOneOfTheConfigs(t *testing.T) {
	_, class := configOf("")
	class.Parameters = map[string]string{contract.ParamConfig: "new"}
	before, earlier := named("old", "", "", "nfs:1"), named("new", "", "nfs", "nfs:0")
	r := finding(t, class, named("new", "", "nfs", ""), before, storedAs(1, earlier, class), storedAs(2, before, class)).AtPresent(class)
	if r.Target.Problem != nil || r.Config.Image != "nfs:0" {
		t.Errorf("got %q of %s, %v, and not the last good one of the ConfigMap that the class names", r.Config.Image, r.Config.Source.Name, r.Target.Problem)
	}
}

func TestWhoeverLacksAConfigReadsWhichKeysItNeeds(t *testing.T) {
	_, class := configOf("")
	const needs = "the keys image, verbs and, unless write-pv is dispatcher, service-account-name"
	if p := finding(t, class).AtPresent(class).Target.Problem; p == nil || !strings.Contains(p.Note.Remedy, needs) {
		t.Errorf("got %v, want %q", p, needs)
	}
}

// The number in the present config also limits the runs for volumes of older revisions.
func TestThePresentConfigOfAnOlderRevisionIsFound(t *testing.T) {
	_, class := configOf("")
	naming := class.DeepCopy()
	naming.Parameters = map[string]string{contract.ParamConfig: "shared"}
	for name, test := range map[string]struct {
		class *storagev1.StorageClass
		now   []metav1.Object
		want  string
	}{
		"by its label":                            {class, []metav1.Object{named("nfs", "nfs", "", "now")}, "now"},
		"by its label, under another name":        {class, []metav1.Object{named("new", "nfs", "", "now")}, "now"},
		"of several its own":                      {class, []metav1.Object{named("new", "nfs", "", "other"), named("nfs", "nfs", "", "now")}, "now"},
		"of several none is its own":              {class, []metav1.Object{named("a", "nfs", "", "other"), named("b", "nfs", "", "other")}, ""},
		"it is only listed":                       {class, []metav1.Object{named("nfs", "", "*", "other")}, ""},
		"by the class's parameter":                {naming, []metav1.Object{named("shared", "", "nfs", "now"), named("nfs", "nfs", "", "other")}, "now"},
		"by the parameter, and not listed":        {naming, []metav1.Object{named("shared", "", "other", "other")}, ""},
		"without its class, by its label":         {nil, []metav1.Object{named("new", "nfs", "", "now")}, "now"},
		"without its class, by its own name":      {nil, []metav1.Object{named("nfs", "", "nfs", "now")}, "now"},
		"without its class, and no longer listed": {nil, []metav1.Object{named("nfs", "", "", "other")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.class != nil {
				test.now = append(test.now, test.class)
			}
			cm, class := configOf("before")
			present, found := finding(t, test.now...).presentOf(config.Config{Source: config.SourceOf(cm, class)})
			if found != (test.want != "") || found && present.Image != test.want {
				t.Errorf("got %q, %t, want %q", present.Image, found, test.want)
			}
		})
	}
}

// People misspell a label, or put the ConfigMap where the class does not look, and do not see it. The
// user of a claim reads it, and learns no namespace of other administrators.
func TestAConfigThatMayBeMeantForAClassIsNamed(t *testing.T) {
	_, class := configOf("")
	in := func(namespace string, cm *corev1.ConfigMap) *corev1.ConfigMap {
		cm.Namespace = namespace
		return cm
	}
	elsewhere := []string{"A ConfigMap of another config namespace is labelled for it", "kubectl get configmaps -A -l storage-class=nfs.", "config-namespace. Otherwise create a ConfigMap"}
	for name, test := range map[string]struct {
		all  []metav1.Object
		want []string
		not  string
	}{
		"there is none":                      {nil, []string{"no provisioner config. Remedy: create a ConfigMap in the namespace flex-provisioner"}, "nfs2"},
		"its label names no class":           {[]metav1.Object{named("cm", "nfs2", "", "i")}, []string{"flex-provisioner/cm has the label", "=nfs2,", "correct its label if", "or create a ConfigMap"}, ""},
		"it lacks the label":                 {[]metav1.Object{named("cm", "", "", "i")}, []string{"flex-provisioner/cm has no label"}, ""},
		"two may be meant":                   {[]metav1.Object{named("cm", "nfs2", "", "i"), named("other", "", "", "i")}, []string{"no provisioner config. Remedy: create"}, "other"},
		"it lists classes that may name it":  {[]metav1.Object{named("cm", "", "a", "i")}, []string{"no provisioner config. Remedy: create"}, "/cm"},
		"it lies in another namespace":       {[]metav1.Object{in("team", named("cm", "nfs", "", "i"))}, elsewhere, "team"},
		"several lie in other namespaces":    {[]metav1.Object{in("team", named("a", "nfs", "", "i")), in("team", named("b", "nfs", "", "i"))}, elsewhere, "team"},
		"one of another class is not meant":  {[]metav1.Object{named("cm", "smb", "", "i"), &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "smb"}}}, []string{"Remedy: create a"}, "/cm"},
		"one elsewhere of another is not it": {[]metav1.Object{in("team", named("cm", "nfs2", "", "i"))}, []string{"Remedy: create a"}, "team"},
	} {
		t.Run(name, func(t *testing.T) {
			p := finding(t, append(test.all, class)...).AtPresent(class).Target.Problem
			if p == nil || p.Reason != "WaitingForConfig" {
				t.Fatalf("got %v", p)
			}
			for _, want := range test.want {
				if !strings.Contains(p.Note.String(), want) {
					t.Errorf("%q lacks %q", p.Note, want)
				}
			}
			if test.not != "" && strings.Contains(p.Note.String(), test.not) {
				t.Errorf("%q names %q", p.Note, test.not)
			}
		})
	}
}
