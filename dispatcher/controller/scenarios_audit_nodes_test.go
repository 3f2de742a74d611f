package controller_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// directories are volumes on nodes, as an image makes and lists them.
type directories struct {
	mu sync.Mutex
	// on are the UIDs on each node, logs what pods have printed, deleted the deletes.
	on      map[string][]string
	logs    map[string]string
	deleted []string
}

// does is the image.
func (d *directories) does(r *fakecluster.Run) fakecluster.Exit {
	d.mu.Lock()
	defer d.mu.Unlock()
	node := r.Pod.Spec.NodeName
	switch r.Verb {
	case contract.List:
		d.logs[r.Pod.Name] = "" // another pod may have had the name
		for _, uid := range d.on[node] {
			d.logs[r.Pod.Name] += fmt.Sprintf(`{"uid":%q,"volume":"pvc-%s","size":1,"claimNamespace":%q,"claimName":"data","storageClass":"gold","clusterUID":"c-1"}`+"\n", uid, uid, fakecluster.ClaimNamespace)
		}
		return fakecluster.Exit{Message: contract.EncodeListEnd(len(d.on[node]))}
	case contract.Delete:
		d.deleted = append(d.deleted, r.Request.UID+" on "+node)
		d.on[node] = slices.DeleteFunc(d.on[node], func(uid string) bool { return uid == r.Request.UID })
	default:
		d.on[node] = append(d.on[node], r.Request.UID)
	}
	return localWorks(r)
}

// printed is a client that reads what the pods of directories have printed.
type printed struct {
	kubernetes.Interface
	by *directories
}

type printedCore struct {
	coreclient.CoreV1Interface
	by *directories
}

type printedPods struct {
	coreclient.PodInterface
	by *directories
}

func (p printed) CoreV1() coreclient.CoreV1Interface { return printedCore{p.Interface.CoreV1(), p.by} }

func (p printedCore) Pods(ns string) coreclient.PodInterface {
	return printedPods{p.CoreV1Interface.Pods(ns), p.by}
}

func (p printedPods) GetLogs(name string, _ *corev1.PodLogOptions) *rest.Request {
	p.by.mu.Lock()
	defer p.by.mu.Unlock()
	return logOf(p.by.logs[name])
}

// logOf returns what reads a text as a log.
func logOf(text string) *rest.Request {
	client := restfake.RESTClient{
		Client: restfake.CreateHTTPClient(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
		}),
		NegotiatedSerializer: scheme.Codecs.WithoutConversion(), GroupVersion: corev1.SchemeGroupVersion,
	}
	return client.Request()
}

// auditing is an administrator's audit --storage --fix at work.
type auditing struct {
	look run.Look
	err  error
	done atomic.Bool // set after the others
}

// audits lets an administrator list the storages, and delete what is left if fix is set. It is killed
// when ctx ends.
func (w *world) audits(ctx context.Context, d *directories, fix bool) *auditing {
	w.T.Helper()
	metas := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(metas); err != nil {
		w.T.Fatal(err)
	}
	client := w.Server.Client(fakecluster.Admin)
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return ctx.Err() != nil, nil, ctx.Err() })
	auditor := &run.Auditor{
		Client: printed{client, d}, Objects: metadatafake.NewSimpleMetadataClient(metas), Clock: clock.RealClock{},
		Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespace: fakecluster.ConfigNamespace, Cluster: run.Cluster{UID: "c-1"}, Timeout: 15 * time.Minute,
	}
	a := &auditing{}
	go func() {
		a.look, a.err = auditor.Look(ctx, run.Storages{All: true})
		if a.err == nil && fix {
			a.err = auditor.Fix(ctx, a.look, nil, func(string, ...any) {})
		}
		a.done.Store(true)
	}()
	return a
}

// newDirectories are two nodes of the class gold, on each of which one volume stands for nothing.
func (w *world) newDirectories() *directories {
	d := &directories{on: map[string][]string{"node-1": {leftUID}, "node-2": {strings.Replace(leftUID, "6f", "7f", 1)}}, logs: map[string]string{}}
	w.chosenClass(d.does, []string{"node-1"}, "run-on", "selected-node", "verbs", "provision,delete,list")
	return d
}

func TestAnAuditDeletesAnOrphanOnEachNodeBesideADispatcher(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.newDirectories()
		orphans := []string{d.on["node-1"][0] + " on node-1", d.on["node-2"][0] + " on node-2"}
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", 5*time.Minute, w.IsBound("data"))
		a := w.audits(w.T.Context(), d, true)
		w.Until("the audit is done", 10*time.Minute, a.done.Load)
		if a.err != nil || len(a.look.Faults)+len(a.look.Notes) > 0 || len(a.look.Found) != 2 || !slices.Equal(d.deleted, orphans) {
			w.T.Errorf("found %+v, faults %v, notes %v, deleted %q, error %v", a.look.Found, a.look.Faults, a.look.Notes, d.deleted, a.err)
		}
		if len(d.on["node-1"]) != 1 || len(d.on["node-2"]) != 0 {
			w.T.Errorf("left are %v", d.on)
		}
	})
}

// A node is lost with its volumes: what is not known of them is said, and nothing is found.
func TestAnAuditTakesNoVolumeOfALostNodeForMissing(t *testing.T) {
	inWorld(t, func(w *world) {
		d := w.newDirectories()
		d.on = map[string][]string{}
		w.Start()
		w.CreateClaim("data")
		w.Until("the claim is bound", 5*time.Minute, w.IsBound("data"))
		fakecluster.Update(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-1"), func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		})
		a := w.audits(w.T.Context(), d, false)
		w.Until("the audit is done", 10*time.Minute, a.done.Load)
		const want = "the node node-1 was not listed, and 1 PersistentVolumes there were not looked for: it is not Ready"
		if a.err != nil || len(a.look.Found) > 0 || len(a.look.Faults) != 1 || !strings.Contains(a.look.Faults[0].Error(), want) {
			w.T.Errorf("found %+v, faults %v, error %v", a.look.Found, a.look.Faults, a.err)
		}
	})
}

// An audit is killed while it lists the nodes. The next one lists them by Jobs of the same names, and
// nothing stays behind.
func TestAnAuditOfNodesThatIsKilledCanBeRunAgain(t *testing.T) {
	for _, after := range []time.Duration{100 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond, 5 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				d := w.newDirectories()
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: d.does, Takes: 10 * time.Second, StartsAfter: 2 * time.Second}
				w.Start()
				ctx, kill := context.WithTimeout(w.T.Context(), after)
				defer kill()
				killed := w.audits(ctx, d, false)
				w.Until("it has ended", time.Minute, killed.done.Load)
				if jobs := len(fakecluster.List[*batchv1.Job](w)); jobs != 2 && after > time.Second {
					w.T.Errorf("it leaves %d Jobs", jobs)
				}
				again := w.audits(w.T.Context(), d, false)
				w.Until("the next one has ended", 15*time.Minute, again.done.Load)
				left := slices.DeleteFunc(again.look.Found, func(f audit.Finding) bool { return f.Kind != audit.VolumeLeft })
				if again.err != nil || len(again.look.Faults) > 0 || len(left) != 2 {
					w.T.Errorf("found %+v, faults %v, error %v", again.look.Found, again.look.Faults, again.err)
				}
				w.Until("no Job is left", time.Hour, func() bool { return len(fakecluster.List[*batchv1.Job](w)) == 0 })
			})
		})
	}
}
