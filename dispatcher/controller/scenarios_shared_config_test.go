package controller_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// longName is a name of a class that no label can have.
var longName = strings.Repeat("gold", 20)

// shared sets up the ConfigMap shared without the label of a class. It lists classes.
func (w *world) shared(classes string, keys ...string) {
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
	w.CreateServiceAccount("true")
	cm := w.CreateConfig("shared", "", append([]string{"classes", classes}, keys...)...)
	fakecluster.Update(w, fakecluster.Admin, cm, func(cm *corev1.ConfigMap) { delete(cm.Labels, contract.LabelStorageClass) })
}

// naming is a change of a class: it names a ConfigMap.
func naming(config string) func(*storagev1.StorageClass) {
	return func(class *storagev1.StorageClass) {
		class.Parameters = map[string]string{contract.ParamConfig: config, "tier": class.Name[:4]}
	}
}

// asking is a change of a claim: it asks for a volume of a class.
func asking(class string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class }
}

func (w *world) updateShared(change func(*corev1.ConfigMap)) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shared", Namespace: fakecluster.ConfigNamespace}}
	fakecluster.Update(w, fakecluster.Admin, cm, change)
}

func TestOneConfigServesEachClassThatItListsAndThatNamesIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.shared("gold, "+longName+"\nsilver", "max-parallel", "1")
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		for _, class := range []string{"gold", "silver", longName} {
			w.CreateClass(class, corev1.PersistentVolumeReclaimDelete, naming("shared"))
		}
		w.Start()
		claims := []*corev1.PersistentVolumeClaim{
			w.CreateClaim("gold"), w.CreateClaim("silver", asking("silver")), w.CreateClaim("long", asking(longName)),
		}
		w.Until("all are bound", time.Minute, w.AllBound)
		w.Advance(time.Minute) // the newest of one class is not the newest of another: none is stored again
		w.mustHaveRevisions(3, "after a claim of each class")
		for _, r := range fakecluster.List[*appsv1.ControllerRevision](w) {
			if r.Revision != 1 {
				w.T.Errorf("the revision %s has the number %d", r.Name, r.Revision)
			}
		}
		for _, r := range w.Runs {
			if tier := r.Request.Properties["tier"]; tier != r.Request.Class[:4] || r.Request.Properties["classes"] != "" || r.Request.Properties[contract.ParamConfig] != "" {
				w.T.Errorf("the run for the class %s has the properties %v", r.Request.Class, r.Request.Properties)
			}
		}
		w.updateShared(func(cm *corev1.ConfigMap) { cm.Data["image"] = newer })
		w.Advance(30 * 24 * time.Hour)
		w.mustHaveRevisions(3, "which PVs name")
		for _, claim := range claims {
			fakecluster.Delete(w, fakecluster.User, claim)
		}
		w.Until("nothing is left", 10*time.Minute, w.Empty)
		for _, r := range w.Runs {
			if r.Image != fakecluster.GoldImage {
				w.T.Errorf("the verb %s of the class %s ran by %s", r.Verb, r.Request.Class, r.Image)
			}
		}
	})
}

func TestTheNewestRevisionOfEachClassOfOneConfigIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.shared("*")
		for _, class := range []string{"gold", "silver"} {
			w.CreateClass(class, corev1.PersistentVolumeReclaimDelete, naming("shared"))
		}
		w.Start()
		gold, silver := w.provisioned("gold"), w.CreateClaim("silver", asking("silver"))
		w.Until("it is bound", time.Minute, w.IsBound("silver"))
		fakecluster.Delete(w, fakecluster.User, gold)
		fakecluster.Delete(w, fakecluster.User, silver)
		w.Until("nothing is left", 10*time.Minute, w.Empty)
		w.Advance(30 * 24 * time.Hour)
		w.mustHaveRevisions(2, "of two classes of an existing ConfigMap")
		w.updateShared(func(cm *corev1.ConfigMap) { cm.Data["timeout"] = "soon" })
		w.Advance(time.Second)
		w.provisioned("again")
		w.CreateClaim("silver", asking("silver"))
		w.Until("the last good one of its class goes on", time.Minute, w.IsBound("silver"))
	})
}

func TestAClassWaitsForTheConfigThatItNames(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.CreateConfig("labelled", longName[:4])
		w.CreateClass("silver", corev1.PersistentVolumeReclaimDelete, naming("shared"))
		w.Start()
		w.CreateClaim("data", asking("silver"))
		w.Advance(time.Minute)
		w.MustEmitSome(onData, "WaitingForConfig", "names the ConfigMap shared", contract.ParamConfig, "namespace "+fakecluster.ConfigNamespace,
			"type=provisioner-config", "data.classes")
		cm := w.CreateConfig("shared", "other")
		w.Advance(time.Minute)
		for _, about := range []string{onData, "ConfigMap/shared"} {
			w.MustEmitSome(about, "ClassNotListed", "class silver", fakecluster.ConfigNamespace+"/shared", "add the class to data.classes")
		}
		fakecluster.Update(w, fakecluster.Admin, cm, func(cm *corev1.ConfigMap) { cm.Data["classes"] = "gold,bronze silverware" })
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		fakecluster.Update(w, fakecluster.Admin, cm, func(cm *corev1.ConfigMap) { cm.Data["classes"] += "\tsilver" })
		w.Until("it is served", 5*time.Second, w.IsBound("data"))
	})
}

// A claim of a namespace that the config does not list gets no run, also while an older revision is
// in use, and where the key comes between the Job and its start. What exists is expanded and deleted.
func TestAConfigServesOnlyTheNamespacesThatItLists(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpExpandableGold(fakecluster.Works, "namespaces", "team-a, ci-*")
		list := func(change func(data map[string]string)) {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "gold", Namespace: fakecluster.ConfigNamespace}}
			fakecluster.Update(w, fakecluster.Admin, cm, func(cm *corev1.ConfigMap) { change(cm.Data) })
			w.Advance(time.Second)
		}
		w.Start()
		w.CreateClaim("data")
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		w.MustEmitSome(onData, "NamespaceNotListed", "its key namespaces", "add app to data.namespaces")
		list(func(data map[string]string) { data["timeout"] = "soon" }) // a fault: the last valid revision would be used
		w.Advance(time.Hour)
		w.MustCreateNoJob()

		list(func(data map[string]string) { data["timeout"], data["namespaces"] = "10m", "team-a, ap*" })
		w.Until("it is served", 5*time.Second, w.IsBound("data"))
		w.NoPodFor["late"] = true
		w.CreateClaim("late")
		w.Until("its Job is there", time.Minute, func() bool { return len(w.CreatedJobs(contract.Provision)) == 2 })
		list(func(data map[string]string) { data["namespaces"] = "" })
		w.NoPodFor["late"] = false
		w.Advance(time.Hour)
		if n := len(w.Runs); n != 1 {
			w.T.Errorf("%d runs", n)
		}
		w.MustEmitSome("PersistentVolumeClaim/late", "NamespaceNotListed")
		w.requestSize("2Gi")
		w.Until("what exists is expanded", 5*time.Minute, w.hasSize("2Gi"))
		fakecluster.Delete(w, fakecluster.User, w.Claim("data"))
		w.Until("its volume is deleted", time.Minute, func() bool { return len(w.Storage) == 0 })
		list(func(data map[string]string) { delete(data, "namespaces") })
		w.Until("all are served", time.Minute, w.AllBound)
	})
}

// TestAConfigThatNoLongerListsAClassServesItNoMore: its last valid revision does not, either.
func TestAConfigThatNoLongerListsAClassServesItNoMore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.shared("gold")
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, naming("shared"))
		w.Start()
		first := w.provisioned("first")
		w.updateShared(func(cm *corev1.ConfigMap) { cm.Data["classes"] = "" })
		w.Advance(time.Second)
		w.CreateClaim("data")
		w.Advance(time.Hour)
		if n := len(w.Runs); n != 1 {
			w.T.Errorf("%d runs", n)
		}
		w.MustEmitSome(onData, "ClassNotListed", "class gold")
		fakecluster.Delete(w, fakecluster.User, first)
		w.Until("what it has made is deleted", time.Minute, func() bool { return w.PVOf(first) == nil })
		w.updateShared(func(cm *corev1.ConfigMap) { cm.Data["classes"] = "*" })
		w.Until("it is served again", 5*time.Second, w.IsBound("data"))
		w.mustHaveRevisions(1, "of one content: who is served says nothing of how")
	})
}

// The writer of a config in one namespace gets no class of another one.
func TestANamedConfigOfAnotherNamespaceServesNoClass(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.options.Namespaces = []string{fakecluster.ConfigNamespace, "team"}
		w.CreateConfigIn("team", "shared", "gold", "classes", "*")
		w.CreateClass("silver", corev1.PersistentVolumeReclaimDelete, naming("shared"))
		w.Start()
		w.CreateClaim("data", asking("silver"))
		w.CreateClaim("other")
		w.Advance(time.Hour)
		w.MustCreateNoJob()
		w.MustEmitSome(onData, "WaitingForConfig", "names the ConfigMap shared", "namespace "+fakecluster.ConfigNamespace)
		w.MustEmitSome("PersistentVolumeClaim/other", "WaitingForConfig", "class gold")
	})
}

func TestAClassWhoseNameIsTooLongForALabelWaitsForTheParameter(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.CreateClass(longName, corev1.PersistentVolumeReclaimDelete)
		w.CreateClass("silver", corev1.PersistentVolumeReclaimDelete, naming("team/shared"))
		w.Start()
		w.CreateClaim("data", asking(longName))
		w.CreateClaim("other", asking("silver"))
		w.Advance(time.Minute)
		w.MustEmitSome(onData, "WaitingForConfig", longName+" has no provisioner config", "too long", contract.ParamConfig, "data.classes")
		w.MustNotContain("PersistentVolumeClaim", contract.LabelStorageClass+"="+longName)
		w.MustEmitSome("PersistentVolumeClaim/other", "WaitingForConfig", "cannot be the name of a ConfigMap")
	})
}

func TestAClassWithALabelledConfigIsServedByTheOneThatItNames(t *testing.T) {
	inWorld(t, func(w *world) {
		w.shared("gold")
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateConfig("gold", "gold", "image", newer)
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, naming("shared"))
		w.Start()
		w.provisioned("data")
		if got := w.Runs[0].Image; got != fakecluster.GoldImage {
			w.T.Errorf("%s ran", got)
		}
	})
}

// A generator of ConfigMaps appends a hash to their names: each edit is another one, and the old
// one stays until it is pruned.
func TestOfTwoConfigsForOneClassTheLastGoodRevisionGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.Images[newer] = fakecluster.Image{Does: fakecluster.Works}
		old := w.CreateConfig("gold-7f8a", "gold")
		w.Start()
		w.provisioned("first")
		w.CreateConfig("gold-2c4d", "gold", "image", newer)
		w.Advance(time.Second)
		w.provisioned("second")
		if got := w.Runs[1].Image; got != fakecluster.GoldImage {
			w.T.Errorf("the second claim was served by %s", got)
		}
		for _, about := range []string{"PersistentVolumeClaim/second", "ConfigMap/gold-7f8a", "ConfigMap/gold-2c4d"} {
			w.MustEmitSome(about, "AmbiguousConfig", "gold-2c4d and gold-7f8a", "class gold", "keep one", "last valid revision")
		}
		fakecluster.Delete(w, fakecluster.Admin, old)
		w.Advance(time.Second)
		w.provisioned("third")
		if got := w.Runs[2].Image; got != newer {
			w.T.Errorf("the third claim was served by %s", got)
		}
		fakecluster.Create(w, fakecluster.Admin, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: old.Name, Namespace: old.Namespace, Labels: old.Labels}, Data: old.Data,
		})
		w.Advance(time.Second)
		w.provisioned("fourth")
		if got := w.Runs[3].Image; got != newer {
			w.T.Errorf("the fourth claim was served by %s: the newest revision of both is the other one's", got)
		}
	})
}
