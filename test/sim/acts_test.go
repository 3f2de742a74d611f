package sim_test

import (
	"cmp"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/cindertest"
)

// act is something that a person does, or that fails. do returns what it was about, empty if there was nothing.
type act struct {
	name string
	do   func(*world) string
}

var people = []act{
	{"a user creates a claim", (*world).createClaim},
	{"a user creates several claims", func(w *world) string { return w.createClaim() + " " + w.createClaim() + " " + w.createClaim() }},
	{"a user deletes a claim", func(w *world) string {
		return one(w, func(claim *corev1.PersistentVolumeClaim) { fakecluster.Delete(w, fakecluster.User, claim) })
	}},
	{"a user grows a claim", (*world).growClaim},
	{"a user clones a claim", (*world).cloneClaim},
	{"an administrator sets a PV to Retain", func(w *world) string { return w.setPolicy(corev1.PersistentVolumeReclaimRetain) }},
	{"an administrator sets a PV to Delete", func(w *world) string { return w.setPolicy(corev1.PersistentVolumeReclaimDelete) }},
	{"an administrator deletes a PV", func(w *world) string {
		return one(w, func(pv *corev1.PersistentVolume) { fakecluster.Delete(w, fakecluster.Admin, pv) })
	}},
	{"an administrator deletes a Job", func(w *world) string {
		return one(w, func(job *batchv1.Job) { fakecluster.Delete(w, fakecluster.Admin, job) })
	}},
	{"an administrator deletes a pod", func(w *world) string {
		return one(w, func(pod *corev1.Pod) { fakecluster.Delete(w, fakecluster.Admin, pod) })
	}},
	{"an administrator deletes a pod by force", func(w *world) string {
		return one(w, func(pod *corev1.Pod) {
			fakecluster.Delete(w, fakecluster.Admin, pod)
			if fakecluster.Get[*corev1.Pod](w, pod.Namespace, pod.Name) != nil {
				fakecluster.Update(w, fakecluster.Admin, pod, func(pod *corev1.Pod) { pod.DeletionGracePeriodSeconds = new(int64(0)) })
			}
		})
	}},
	{"an administrator changes a config", (*world).changeConfig},
	{"an administrator deletes a config", func(w *world) string {
		return one(w, func(config *corev1.ConfigMap) { fakecluster.Delete(w, fakecluster.Admin, config) })
	}},
	{"an administrator deletes a class", func(w *world) string {
		return one(w, func(class *storagev1.StorageClass) { fakecluster.Delete(w, fakecluster.Admin, class) })
	}},
	{"an administrator creates what is missing", (*world).createMissing},
	{"an administrator takes the claimRef off a PV", (*world).freePV},
	{"an administrator writes another PV over a volume", (*world).copyPV},
	{"a user labels a claim", func(w *world) string {
		label := fmt.Sprint(w.rand.IntN(3))
		return one(w, func(claim *corev1.PersistentVolumeClaim) {
			fakecluster.Update(w, fakecluster.User, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Labels = map[string]string{"tier": label} })
		})
	}},
	{"a user creates a claim of a name that there was", func(w *world) string {
		name := fmt.Sprintf("data-%d", 1+w.rand.IntN(w.claims+1))
		if w.claims < 1 || name == fmt.Sprintf("data-%d", w.claims+1) || w.Claim(name) != nil {
			return ""
		}
		return w.createNamed(name)
	}},
	{"an administrator starts a dispatcher", func(w *world) string {
		if len(w.Processes()) > 1 {
			return ""
		}
		return fmt.Sprint("number ", w.Start().Number)
	}},
	{"an administrator stops a dispatcher", func(w *world) string {
		all := w.Processes()
		if len(all) == 0 {
			return ""
		}
		p := all[w.rand.IntN(len(all))]
		w.End(p)
		return fmt.Sprint("number ", p.Number)
	}},
}

var faults = []act{
	{"a dispatcher dies after a few writes", func(w *world) string {
		all := w.Processes()
		if len(all) == 0 {
			return ""
		}
		p := all[w.rand.IntN(len(all))]
		p.DieAfter(1 + w.rand.Int64N(4))
		return fmt.Sprint("number ", p.Number)
	}},
	{"the PV controller stops", func(w *world) string { w.BinderDown = true; return "it" }},
	{"the PV controller goes on", func(w *world) string { w.BinderDown = false; return "it" }},
	{"a node is removed", (*world).removeNode},
	{"images cannot be pulled", func(w *world) string { return w.setWaits("ErrImagePull") }},
	{"images can be pulled", func(w *world) string { return w.setWaits("") }},
	{"a node is cordoned", func(w *world) string { w.Cordoned = "node-1"; return w.Cordoned }},
	{"no node is cordoned", func(w *world) string { w.Cordoned = ""; return "any" }},
	{"kubelets stop to end pods", func(w *world) string { w.NodeLost = true; return "all" }},
	{"kubelets go on", func(w *world) string { w.NodeLost = false; return "all" }},
	{"writes of dispatchers are refused", func(w *world) string {
		resource := []string{"jobs", "pods", "persistentvolumes", "persistentvolumeclaims", "controllerrevisions"}[w.rand.IntN(5)]
		w.Server.Refuse(func(by, _ string, obj fakecluster.Object) error {
			if by == fakecluster.DispatcherName && fakecluster.ResourceOf(obj) == resource {
				return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, obj.GetName(), nil)
			}
			return nil
		})
		return resource
	}},
	{"writes of dispatchers are allowed", func(w *world) string { w.Server.Refuse(nil); return "all" }},
	{"answers to creations are lost", func(w *world) string {
		w.Server.LoseAnswer(func(obj fakecluster.Object) bool { return fakecluster.ResourceOf(obj) == "jobs" })
		return "of Jobs"
	}},
	{"Cinder is down", func(w *world) string { w.cinder.down = true; return "it" }},
	{"Cinder is up", func(w *world) string { w.cinder.down = false; return "it" }},
	{"answers of Cinder get lost", func(w *world) string { w.cinder.lossy = true; return "it" }},
	{"a volume of Cinder fails", func(w *world) string { return w.cinder.failOne(w.rand) }},
	{"Cinder refuses the login", func(w *world) string { w.cinder.refuses(true); return "it" }},
	{"Cinder recovers", func(w *world) string { w.cinder.recover(); return "it" }},
	{"all answers arrive", func(w *world) string { w.Server.LoseAnswer(nil); return "all" }},
}

// one lets something be done with one object of a type, and returns its name.
func one[O fakecluster.Object](w *world, do func(O)) string {
	all := fakecluster.List[O](w)
	if len(all) == 0 {
		return ""
	}
	obj := all[w.rand.IntN(len(all))]
	do(obj)
	return obj.GetName()
}

// class is a class of the world, with the keys of its config.
type class struct {
	name    string
	policy  corev1.PersistentVolumeReclaimPolicy
	changes []func(*storagev1.StorageClass)
	keys    []string
	// parameters are those of a class that Cinder serves.
	parameters map[string]string
}

// grows reports whether claims of the class may ask for more.
func (c class) grows() bool { return c.name == "gold" || c.parameters != nil }

// classOf returns the class of a claim.
func classOf(claim *corev1.PersistentVolumeClaim) class {
	return classes[slices.IndexFunc(classes, func(c class) bool { return c.name == *claim.Spec.StorageClassName })]
}

var classes = []class{
	{name: "gold", keys: []string{"verbs", allVerbs, "max-parallel", "3"}},
	{name: "silver", keys: []string{"batch-size", "8", "max-parallel", "2"}},
	{name: "iron", policy: corev1.PersistentVolumeReclaimRetain},
	{name: "tin", keys: []string{"write-pv", "dispatcher"}},
	{name: "zinc", changes: []func(*storagev1.StorageClass){fakecluster.WaitForFirstConsumer}, keys: []string{"run-on", "selected-node"}},
	{name: "lead", changes: []func(*storagev1.StorageClass){fakecluster.WaitForFirstConsumer}, keys: []string{"run-on", "selected-node", "node-gone", "forget"}},
	{name: "cobalt", keys: []string{"image", cinderImage, "data-sources", "PersistentVolumeClaim", "verbs", allVerbs}, parameters: map[string]string{"type": cindertest.TypePlain, "smartclone": "true"}},
	{name: "nickel", keys: []string{"image", cinderImage, "data-sources", "PersistentVolumeClaim", "verbs", allVerbs, "batch-size", "8"}, parameters: map[string]string{"type": cindertest.TypePlain, "parallel": "1", "smartclone": "true"}},
	{name: "chrome", keys: []string{"image", cinderImage, "data-sources", "PersistentVolumeClaim", "verbs", allVerbs}, parameters: map[string]string{"type": cindertest.TypePlain, "attach-api": "reserve", "smartclone": "true"}},
}

// claimsAtFirst is how many claims there are when the first dispatcher starts.
const claimsAtFirst = 10

const allVerbs = "provision,delete,expand"

func (w *world) setUp() {
	w.Step(w.rand.IntN)
	w.CreateServiceAccount("true")
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: w.work}
	w.Images[cinderImage] = fakecluster.Image{Program: w.runCinder}
	w.cinder.Server = cindertest.NewUnserved(cindertest.Releases()[w.rand.IntN(4)])
	w.cinder.Quota, w.cinder.failed = 1000, map[string]string{}
	for range 1000 {
		w.Choices = append(w.Choices, nodes[w.rand.IntN(len(nodes))])
	}
	w.createMissing()
	for range claimsAtFirst {
		w.createClaim()
	}
	w.Start()
	w.tell("the world begins")
}

// createMissing creates the classes and configs that are missing.
func (w *world) createMissing() string {
	created := w.createMissingNodes()
	for _, c := range classes {
		if fakecluster.Get[*storagev1.StorageClass](w, "", c.name) == nil {
			w.CreateClass(c.name, cmp.Or(c.policy, corev1.PersistentVolumeReclaimDelete), append(c.changes, func(class *storagev1.StorageClass) {
				class.Parameters, class.AllowVolumeExpansion = c.parameters, new(c.grows())
			})...)
			created += " class " + c.name
		}
		if fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, c.name) == nil {
			w.CreateConfig(c.name, c.name, c.keys...)
			created += " " + c.name
		}
	}
	return created
}

// work is what a container does for one claim.
func (w *world) work(r *fakecluster.Run) fakecluster.Exit {
	n := w.rand.IntN(10)
	switch {
	case w.calm || n < 6:
		return works(r)
	case n == 6:
		return fakecluster.Exit{Code: []int32{65, 69, 73, 75, 77, 78}[w.rand.IntN(6)], Message: "claim: nothing was made"}
	case r.Verb == contract.Provision && n == 7:
		return fakecluster.Halfway([]int32{65, 73, 75, 1}[w.rand.IntN(4)])(r)
	default: // all was done, and the container dies
		works(r)
		return fakecluster.Exit{Code: 137}
	}
}

// works does the work, and leaves the PV to the dispatcher where the config says so.
func works(r *fakecluster.Run) fakecluster.Exit {
	if r.Request.Class == "lead" || r.Request.Class == "zinc" {
		return onItsNode(r)
	}
	if r.Verb != contract.Provision || r.Request.Class != "tin" {
		return fakecluster.Works(r)
	}
	r.CreateVolume()
	return fakecluster.Exit{Message: fmt.Sprintf(`{"source": {"nfs": {"server": "10.10.2.4", "path": "/%s"}}}`, r.PV.Name)}
}

func (w *world) createClaim() string {
	w.claims++
	return w.createNamed(fmt.Sprintf("data-%d", w.claims))
}

func (w *world) createNamed(name string) string {
	w.CreateClaim(name, func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.StorageClassName = new(classes[w.rand.IntN(len(classes))].name)
	})
	return name
}

func (w *world) growClaim() string {
	bound := slices.DeleteFunc(fakecluster.List[*corev1.PersistentVolumeClaim](w), func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeName == "" || !classOf(claim).grows()
	})
	if len(bound) == 0 {
		return ""
	}
	claim := bound[w.rand.IntN(len(bound))]
	fakecluster.Update(w, fakecluster.User, claim, func(claim *corev1.PersistentVolumeClaim) {
		size := claim.Spec.Resources.Requests.Storage()
		size.Add(resource.MustParse("1Gi"))
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = *size
	})
	return claim.Name
}

func (w *world) cloneClaim() string {
	sources := slices.DeleteFunc(fakecluster.List[*corev1.PersistentVolumeClaim](w), func(claim *corev1.PersistentVolumeClaim) bool {
		return classOf(claim).parameters == nil
	})
	if len(sources) == 0 {
		return ""
	}
	source := sources[w.rand.IntN(len(sources))]
	w.claims++
	return w.CreateClaim(fmt.Sprintf("data-%d", w.claims), func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.StorageClassName = source.Spec.StorageClassName
		claim.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: source.Name}
		claim.Spec.Resources = source.Spec.Resources
	}).Name + " of " + source.Name
}

func (w *world) changeConfig() string {
	return one(w, func(config *corev1.ConfigMap) {
		timeout := fmt.Sprintf("%dm", 9+w.rand.IntN(3))
		fakecluster.Update(w, fakecluster.Admin, config, func(cm *corev1.ConfigMap) { cm.Data["timeout"] = timeout })
	})
}

// heal ends every fault. One dispatcher runs from then on.
func (w *world) heal() {
	w.calm, w.BinderDown, w.NodeLost, w.Cordoned = true, false, false, ""
	w.setWaits("")
	w.cinder.recover()
	w.Server.Refuse(nil)
	w.Server.LoseAnswer(nil)
	w.createMissing()
	for _, p := range w.Processes() {
		w.End(p)
	}
	w.Start()
	w.tell("people leave the world alone, and nothing fails any more")
}
