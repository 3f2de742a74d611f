package conform_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/bubble"
)

const (
	password = "a-password-of-gold"
	clusterU = "cluster-1"
	refusal  = "kubectl flex conform refuses this PersistentVolume for a moment"
)

// world is a cluster with the class gold, whose image breaks one promise. The dispatcher is the
// shipped one.
type world struct {
	*fakecluster.Cluster

	breaks string
	// interrupt is called with each result, and may stop the run.
	interrupt func(conform.Result, func())
	// interruptAt is the number of the request with which the run is stopped, 0 for none.
	interruptAt int

	mu sync.Mutex
	// closed is set while PersistentVolumes are refused. late is set if another API server still accepts
	// them then, and policy is the reclaim policy that the image gives them, empty for that of the class.
	closed, late bool
	// described is set if the dispatcher writes the PersistentVolumes.
	described bool
	policy    corev1.PersistentVolumeReclaimPolicy
	// volumes are those of the storage, by the UID of their claim. half are those that a run is at
	// work on, by verb and UID.
	volumes map[string]audit.Volume
	half    map[string]bool
}

// inWorld runs a test in a world.
func inWorld(t *testing.T, breaks string, test func(*world)) {
	t.Helper()
	bubble.Test(t, func(p *fakecluster.Process) (fakecluster.Dispatcher, error) {
		return controller.New(p.Client, p.Events, p.Clock, controller.Options{
			Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespaces: []string{fakecluster.ConfigNamespace}, Allowed: jobs.Allowances{},
			KubeAPI: "https://10.0.0.1", Workers: 4, AheadOfBinder: true, ClusterUID: clusterU,
		})
	}, func(c *fakecluster.Cluster) {
		w := &world{Cluster: c, breaks: breaks, volumes: map[string]audit.Volume{}, half: map[string]bool{}}
		c.SetUpExpandableGold(nil, "verbs", "provision,delete,expand,list", "env-from-secret", "login", "data-sources", "PersistentVolumeClaim", "batch-size", "8", "timeout", "5m")
		// A claim is bound before the pod of its run has ended.
		c.Images[fakecluster.GoldImage] = fakecluster.Image{
			Phases: w.phases, StartsAfter: time.Second, Lingers: 2 * time.Second,
		}
		fakecluster.Create(c, fakecluster.Admin, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: fakecluster.ConfigNamespace, Name: "login"}, Data: map[string][]byte{"PASSWORD": []byte(password)},
		})
		c.Start()
		test(w)
	})
}

// conform tests the image of the class gold.
func (w *world) conform(change ...func(*conform.Run)) (report *conform.Report, err error) {
	w.T.Helper()
	class := fakecluster.Get[*storagev1.StorageClass](w, "", "gold")
	cm := fakecluster.Get[*corev1.ConfigMap](w, fakecluster.ConfigNamespace, "gold")
	cfg, faults := config.Parse(config.SourceOf(cm, class), config.Dispatcher{Provisioner: contract.ProvisionerName})
	if len(faults) > 0 {
		w.T.Fatalf("%v", faults)
	}
	ctx, stop := context.WithCancel(w.Context())
	defer stop()
	run := &conform.Run{
		Client: w.client(stop), Clock: clock.RealClock{}, Class: class, Config: cfg, List: w.list, ClusterUID: clusterU,
		Options: conform.Options{Size: resource.MustParse("1Gi"), Kills: 1, Provoke: conform.Provocations{
			"bad-config": {Data: map[string]string{"mode": "wrong"}}, "bad-credentials": {Data: map[string]string{"login": "wrong"}}, "no-capacity": {Data: map[string]string{"room": "none"}},
		}},
	}
	for _, c := range change {
		c(run)
	}
	done := make(chan struct{})
	ended := false
	go func() {
		defer close(done)
		report, err = run.Do(ctx, func(result conform.Result) {
			if w.interrupt != nil {
				w.interrupt(result, stop)
			}
		})
	}()
	w.Until("the test of the image to end", 2*time.Hour, func() bool {
		select {
		case <-done:
			ended = true
		default:
		}
		return ended
	})
	return report, err
}

func (w *world) list(context.Context) (out []audit.Volume, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.volumes {
		if w.breaks == "list" {
			v.Class = ""
		}
		out = append(out, v)
	}
	return out, nil
}

// phases is what the image does for a request.
func (w *world) phases(r *fakecluster.Run) []fakecluster.Phase {
	does := func(step func(*fakecluster.Run) *fakecluster.Exit) func(*fakecluster.Run) *fakecluster.Exit {
		return func(r *fakecluster.Run) *fakecluster.Exit {
			w.mu.Lock()
			defer w.mu.Unlock()
			return step(r)
		}
	}
	last := 500 * time.Millisecond
	if strings.HasPrefix(r.Request.Name, string(r.Verb)+"-killed") {
		last = time.Minute // a container works on in its grace period
	}
	switch r.Verb {
	case contract.Provision:
		return []fakecluster.Phase{{After: 10 * time.Millisecond, Does: does(w.create)}, {After: last, Does: does(w.writePV)}}
	case contract.Expand:
		return []fakecluster.Phase{{After: 10 * time.Millisecond, Does: does(w.grow)}, {After: last, Does: does(w.finish)}}
	default:
		return []fakecluster.Phase{{After: 10 * time.Millisecond, Does: does(w.remove)}, {After: last, Does: does(w.finish)}}
	}
}

func exit(code int32, message string) *fakecluster.Exit {
	return &fakecluster.Exit{Code: code, Message: message}
}

// finish ends a run well.
func (w *world) finish(r *fakecluster.Run) *fakecluster.Exit {
	delete(w.half, string(r.Verb)+r.Request.UID)
	return exit(0, "")
}

// orElse returns an exit, and another one if the image breaks a promise.
func (w *world) orElse(promise string, code int32) *fakecluster.Exit {
	if w.breaks == promise {
		code = contract.ExitTempFail
	}
	return exit(code, "claim: refused")
}

// refuse returns how a request is refused, nil if it is not.
func (w *world) refuse(r *fakecluster.Run) *fakecluster.Exit {
	switch p := r.Request.Properties; {
	case p["mode"] == "wrong":
		return w.orElse("bad-config", contract.ExitConfig)
	case p["login"] == "wrong":
		return exit(contract.ExitNoPerm, "the login is wrong")
	case p["room"] == "none":
		return w.orElse("no-capacity", contract.ExitCapacity)
	case r.Request.Size <= 10<<30:
		return nil
	case w.breaks == "quiet":
		return exit(contract.ExitBadRequest, "claim: the login "+password+" gets at most 10Gi")
	case w.breaks == "refuses":
		return exit(contract.ExitBadRequest, "too large")
	default:
		return exit(contract.ExitBadRequest, "claim: this class serves at most 10Gi")
	}
}

func (w *world) create(r *fakecluster.Run) *fakecluster.Exit {
	uid, key := r.Request.UID, string(r.Verb)+r.Request.UID
	if refused := w.refuse(r); refused != nil {
		return refused
	}
	_, exists := w.volumes[uid]
	isBatch := strings.HasPrefix(r.Request.Name, "batch")
	switch {
	case w.breaks == "provision":
		return exit(0, "")
	case w.breaks == "provision-again" && exists && !w.half[key], w.breaks == "provision-killed" && w.half[key]:
		return exit(1, "it exists")
	case w.breaks == "batch" && isBatch && r.Request.Name == "batch-3" && r.Number == 1:
		return exit(1, "lost")
	}
	w.half[key] = true
	r.CreateVolume()
	w.volumes[uid] = audit.Volume{
		UID: uid, Volume: r.Request.PVName, Size: r.Request.Size, Namespace: r.Request.Namespace, Name: r.Request.Name, Class: r.Request.Class, ClusterUID: r.Request.ClusterUID,
	}
	return nil
}

func (w *world) writePV(r *fakecluster.Run) *fakecluster.Exit {
	delete(w.half, string(r.Verb)+r.Request.UID)
	if w.described {
		return exit(0, `{"source":{"nfs":{"server":"filer","path":"/`+r.Request.PVName+`"}}}`)
	}
	if w.closed && !w.late {
		return exit(contract.ExitTempFail, refusal)
	}
	r.WritePV(func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = cmp.Or(w.policy, pv.Spec.PersistentVolumeReclaimPolicy)
		if w.breaks == "provision-pv" {
			pv.Spec.StorageClassName = "another"
		}
		if src := r.Request.Source; src != nil && w.breaks != "clone" {
			metav1.SetMetaDataAnnotation(&pv.ObjectMeta, contract.AnnCloneOf, src.Namespace+"/"+src.Name)
		}
	})
	return exit(0, "")
}

func (w *world) grow(r *fakecluster.Run) *fakecluster.Exit {
	key := string(r.Verb) + r.Request.UID
	switch {
	case w.breaks == "expand":
		return exit(0, "")
	case w.breaks == "expand-killed" && w.half[key]:
		return exit(1, "it grows")
	}
	w.half[key] = true
	r.ExpandVolume()
	v := w.volumes[r.Request.UID]
	v.Size = max(v.Size, r.Request.Size)
	w.volumes[r.Request.UID] = v
	return nil
}

func (w *world) remove(r *fakecluster.Run) *fakecluster.Exit {
	_, exists := w.volumes[r.Request.UID]
	switch {
	case w.breaks == "provision-abandoned" && r.Request.Undo, w.breaks == "delete" && !r.Request.Undo:
		return exit(0, "")
	case r.Request.Properties["login"] == "wrong" && w.breaks == "bad-credentials":
		return exit(0, "")
	case r.Request.Properties["login"] == "wrong":
		return exit(contract.ExitNoPerm, "the login is wrong")
	case w.breaks == "undo-refused" && r.Request.Undo:
		if refused := w.refuse(r); refused != nil {
			return refused
		}
	case w.breaks == "delete-killed" && !r.Request.Undo && !exists:
		return exit(1, "it does not exist")
	}
	r.DeleteVolume()
	delete(w.volumes, r.Request.UID)
	return nil
}

// mustBeOwn checks that a run deletes what it has created, and nothing else: by its UID, or by a name that
// no other object has.
func (w *world) mustBeOwn(a clienttesting.DeleteActionImpl) {
	switch resource := a.GetResource().Resource; {
	case resource == "persistentvolumeclaims" && a.GetNamespace() != "flex-conform-x":
		w.T.Errorf("the claim %s of another namespace is deleted", a.Name)
	case slices.Contains([]string{"persistentvolumeclaims", "namespaces"}, resource), resource == "pods" && a.GetNamespace() == fakecluster.ConfigNamespace:
		if p := a.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID == "" {
			w.T.Errorf("%s %s is not deleted by its UID", resource, a.Name)
		}
	case !strings.HasPrefix(a.Name, "flex-conform-x"):
		w.T.Errorf("%s %s is deleted, which is not the run's", resource, a.Name)
	}
}
