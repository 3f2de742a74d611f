package sim_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// act is something that a person does, or that fails. do returns what it was about, empty if there
// was nothing.
type act struct {
	name string
	do   func(*world) string
}

var users = []act{
	{"a user creates a claim", (*world).createClaim},
	{"a user creates several claims", func(w *world) string { return w.createClaim() + " " + w.createClaim() + " " + w.createClaim() }},
	{"a user deletes a claim", func(w *world) string {
		return one(w, func(claim *corev1.PersistentVolumeClaim) { fakecluster.Delete(w, fakecluster.User, claim) })
	}},
	{"a user grows a claim", (*world).growClaim},
	{"a user clones a claim", (*world).cloneClaim},
	{"an administrator deletes a Job", func(w *world) string {
		return one(w, w.deleteJob)
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
	{"an administrator asks for a retry", func(w *world) string {
		return one(w, func(job *batchv1.Job) {
			fakecluster.Update(w, fakecluster.Admin, job, func(job *batchv1.Job) { fakecluster.Annotate(job, jobs.AnnRetry, "now") })
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
}

// people are what users and administrators do, faults what fails.
var (
	people = slices.Concat(users, volumePeople, dispatcherPeople, namespacePeople, backupPeople, trashPeople, arranged)
	faults = slices.Concat(clusterFaults, dispatcherFaults, admissionFaults, nodeFaults, cinderFaults)
)

var clusterFaults = []act{
	{"the PV controller stops", func(w *world) string { w.BinderDown = true; return "it" }},
	{"the PV controller goes on", func(w *world) string { w.BinderDown = false; return "it" }},
	{"answers to creations are lost", func(w *world) string {
		w.Server.LoseAnswer(func(obj fakecluster.Object) bool {
			return fakecluster.ResourceOf(obj) == "jobs" && !w.admission.changesJobs()
		})
		return "of Jobs"
	}},
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
func (c class) grows() bool { return c.name == "gold" || c.isCinder() }

// maxParallel is how many of its containers may be at work.
func (c class) maxParallel() int {
	if i := slices.Index(c.keys, "max-parallel"); i >= 0 {
		n, _ := strconv.Atoi(c.keys[i+1])
		return n
	}
	return 20
}

func (c class) isCinder() bool { return c.parameters["type"] != "" }

// namespace is where its config is.
func (c class) namespace() string {
	return cmp.Or(c.parameters[contract.ParamConfigNamespace], fakecluster.ConfigNamespace)
}

// classOf returns the class of a claim.
func classOf(claim *corev1.PersistentVolumeClaim) class {
	all := slices.Concat(classes, hardClasses)
	return all[slices.IndexFunc(all, func(c class) bool { return c.name == *claim.Spec.StorageClassName })]
}

var classes = []class{
	{name: "gold", keys: []string{"verbs", allVerbs, "max-parallel", "3"}},
	{name: "silver", keys: []string{"batch-size", "8", "max-parallel", "2"}},
	{name: "iron", policy: corev1.PersistentVolumeReclaimRetain},
	{name: "tin", keys: []string{"write-pv", "dispatcher"}},
	{name: "brass", keys: []string{"max-parallel", "2"}, parameters: map[string]string{contract.ParamConfigNamespace: further}},
	{name: "zinc", changes: []func(*storagev1.StorageClass){fakecluster.WaitForFirstConsumer}, keys: []string{"run-on", "selected-node"}},
	{name: "lead", changes: []func(*storagev1.StorageClass){fakecluster.WaitForFirstConsumer}, keys: []string{"run-on", "selected-node", "node-gone", "forget"}},
	{name: "cobalt", keys: []string{"image", cinderImage, "data-sources", "PersistentVolumeClaim", "verbs", allVerbs}, parameters: map[string]string{"type": cindertest.TypePlain, "smartclone": "true"}},
	{name: "nickel", keys: []string{"image", cinderImage, "data-sources", "PersistentVolumeClaim", "verbs", allVerbs, "batch-size", "8"}, parameters: map[string]string{"type": cindertest.TypePlain, "parallel": "1", "smartclone": "true"}},
	{name: "chrome", keys: []string{"image", cinderImage, "data-sources", "PersistentVolumeClaim", "verbs", allVerbs}, parameters: map[string]string{"type": cindertest.TypePlain, "attach-api": "reserve", "smartclone": "true"}},
}

// claimsAtFirst is how many claims there are when the first dispatcher starts.
const claimsAtFirst = 20

const allVerbs = "provision,delete,expand"

func (w *world) setUp() {
	w.Step(w.rand.IntN)
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: w.work, Batch: w.workOnBatch, Lingers: time.Second} // as with a kubelet
	if w.spec.isHard {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Phases: w.phases}
	}
	w.setUpCinder()
	w.setClocks()
	w.BeforeWrite = func(string, string) { w.beforeWrite() }
	w.Server.Refuse(w.admit)
	w.Server.Overtake(w.overtake)
	w.createMissing()
	if w.spec.begins != nil {
		w.spec.begins(w)
	}
	for range w.spec.claims {
		w.createClaim()
	}
	w.Start()
	w.tell("the world begins")
	if w.rand.IntN(begun) == 0 {
		w.serveFirst()
	}
}

// createMissing creates the classes and configs that are missing.
func (w *world) createMissing() string {
	created := w.createMissingNodes()
	for _, c := range w.spec.classes {
		if fakecluster.Get[*storagev1.StorageClass](w, "", c.name) == nil {
			w.CreateClass(c.name, cmp.Or(c.policy, corev1.PersistentVolumeReclaimDelete), append(c.changes, func(class *storagev1.StorageClass) {
				class.Parameters, class.AllowVolumeExpansion = c.parameters, new(c.grows())
			})...)
			created += " class " + c.name
		}
		if c.namespace() == further && w.terminating || fakecluster.Get[*corev1.ConfigMap](w, c.namespace(), c.name) != nil {
			continue
		}
		w.createNamespace(c.namespace())
		w.CreateConfigIn(c.namespace(), c.name, c.name, c.keys...)
		created += " " + c.name
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

// workOnBatch is what a container does for several claims. It may die on the way, with results for
// those that it has done.
func (w *world) workOnBatch(all []*fakecluster.Run) fakecluster.Exit {
	if w.calm || w.rand.IntN(3) > 0 {
		return fakecluster.EachAlone(all, w.work)
	}
	some := fakecluster.EachAlone(all[:1+w.rand.IntN(len(all)-1)], w.work)
	return fakecluster.Exit{Code: 137, Message: some.Message}
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

// deleteJob deletes a Job as kubectl does, or, one time in three, without its pods, as the API
// server does where a client does not say how.
func (w *world) deleteJob(job *batchv1.Job) {
	if w.rand.IntN(3) > 0 {
		fakecluster.Delete(w, fakecluster.Admin, job)
		return
	}
	_ = w.Server.Client(fakecluster.Admin).BatchV1().Jobs(job.Namespace).Delete(w.T.Context(), job.Name, metav1.DeleteOptions{}) // or it is forbidden there
}

func (w *world) createClaim() string {
	w.claims++
	return w.createNamed(fmt.Sprintf("data-%d", w.claims))
}

func (w *world) createNamed(name string) string {
	return w.createOf(name, pickOne(w, w.spec.classes).name)
}

func (w *world) createOf(name, class string) string {
	w.CreateClaim(name, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = new(class) })
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
		return !classOf(claim).isCinder()
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

// changeConfig changes a config, or only how its pods are scheduled.
func (w *world) changeConfig() string {
	return one(w, func(config *corev1.ConfigMap) {
		timeout, tolerated, scheduling := fmt.Sprintf("%dm", 9+w.rand.IntN(3)), w.rand.IntN(3), w.rand.IntN(2) > 0
		fakecluster.Update(w, fakecluster.Admin, config, func(cm *corev1.ConfigMap) {
			if scheduling {
				cm.Data["pod-template"] = fmt.Sprintf("spec: {tolerations: [{key: rack-%d, operator: Exists}]}", tolerated)
			} else {
				cm.Data["timeout"] = timeout
			}
		})
	})
}

// heal ends every fault. One dispatcher runs from then on.
func (w *world) heal() {
	w.calm, w.BinderDown, w.NodeLost = true, false, false
	w.uncordon()
	w.admission, w.overtakes = admission{}, false
	w.setWaits("")
	w.cinder.recover()
	w.Server.LoseAnswer(nil)
	w.reconnect()
	w.Server.Forbidden.Delete(further)
	for range nodes {
		ofFrozen(w, (*world).thaw)
	}
	w.createMissing()
	w.emptyTrash()
	w.goOn()
	for _, p := range w.Processes() {
		w.end(p)
	}
	w.Start()
	w.tell("people leave the world alone, and nothing fails any more")
}
