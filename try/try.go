package try

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/try/box"
)

// Trial is a class, and what is needed to try its provisioner.
type Trial struct {
	conform.Options

	Class  *storagev1.StorageClass
	Config config.Config
	// Configs are the ConfigMaps that its pods may mount, with that of the class. Secrets and
	// Accounts are those of its files.
	Configs  []*corev1.ConfigMap
	Secrets  []*corev1.Secret
	Accounts []*corev1.ServiceAccount
	// Serving are the flags of the dispatcher.
	Serving options.Serving
	// Runner runs the containers.
	Runner box.Runner
	// Shown is called with each run of a container when that has ended, and with each event about a
	// claim, in order.
	Shown func(Shown)
}

// Shown is a run of a container that has ended, or an event.
type Shown struct {
	// Verb, Claim and End are those of a run.
	Verb  contract.Verb
	Claim string
	End   box.End
	// Event is one about a claim, as "Warning Reason: note".
	Event string
	// PV is the PersistentVolume that a container has written, nil for none.
	PV *corev1.PersistentVolume
}

// Do tests the promises of the provisioner, and deletes what it has made, also if ctx ends. say is
// called with each result. The error says why promises could not be tested.
func (t *Trial) Do(ctx context.Context, say func(conform.Result)) (*conform.Report, error) {
	if err := t.whyNot(); err != nil {
		return nil, err
	}
	ctx, failed := context.WithCancel(ctx)
	defer failed()
	w, err := newWorld(ctx, t, failed)
	if err != nil {
		return nil, err
	}
	defer w.close()
	skip := map[string]string{conform.Mount: "no pod mounts a volume here: kubectl flex conform --mount tests it"}
	maps.Copy(skip, t.Skip)
	test := &conform.Run{
		Options: t.Options, Client: w.client(), Clock: w.clock, Class: t.Class, Config: t.Config, ClusterUID: w.uid,
		List: w.list, PodImage: noImage, InMemory: &conform.InMemory{Took: w.took},
	}
	test.Skip = skip
	report, err := test.Do(ctx, say)
	return report, cmp.Or(w.failure(), err)
}

// whyNot returns what the files lack that a pod would wait for.
func (t *Trial) whyNot() error {
	names := []string{t.Config.EnvSecret, t.Config.FilesSecret}
	for _, provocation := range t.Provoke {
		names = append(names, provocation.Data["env-from-secret"], provocation.Data["files-from-secret"])
	}
	for _, name := range names {
		if name != "" && t.secret(name) == nil {
			return t.lacks("Secret", name)
		}
	}
	return nil
}

func (t *Trial) lacks(kind, name string) error {
	return fmt.Errorf("the files have no %s %s/%s, which the pods of the class need. "+
		"Remedy: name a file with it, too", kind, t.Config.Source.Namespace, name)
}

func (t *Trial) secret(name string) *corev1.Secret { return named(t, t.Secrets, name) }

func (t *Trial) configMap(name string) *corev1.ConfigMap { return named(t, t.Configs, name) }

// named returns the object that pods of the class know by a name, or nil.
func named[T metav1.Object](t *Trial, all []T, name string) (found T) {
	for _, one := range all {
		if one.GetNamespace() == t.Config.Source.Namespace && one.GetName() == name {
			found = one
		}
	}
	return found
}

// LogsIn reports whether the provisioner has a login to a storage.
func (t *Trial) LogsIn() bool { return t.Config.EnvSecret != "" || t.Config.FilesSecret != "" }

// Account returns the ServiceAccount that the config names and the files do not have, or nil. A trial
// takes it for granted.
func (t *Trial) Account() *corev1.ServiceAccount {
	name := t.Config.ServiceAccount
	if name == "" || named(t, t.Accounts, name) != nil {
		return nil
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: t.Config.Source.Namespace, Name: name, Labels: map[string]string{contract.LabelProvisioner: "true"},
	}}
}

// Flags returns the flags that a dispatcher needs to serve the class, beyond those that were given.
func (t *Trial) Flags() []string {
	out := slices.DeleteFunc(jobs.Needs(t.Config), func(flag string) bool {
		return slices.Contains(t.Serving.Allow, strings.TrimPrefix(flag, allow))
	})
	if ns := t.Config.Source.Namespace; !slices.Contains(t.Serving.Namespaces(), ns) {
		out = append(out, "--config-namespaces="+ns)
	}
	return out
}

// allowances returns what the pods of the class may do in the trial: whatever they need.
func (t *Trial) allowances() (jobs.Allowances, error) {
	allowed, err := t.Serving.Allowances()
	if err != nil {
		return nil, err
	}
	for _, flag := range jobs.Needs(t.Config) {
		if err := allowed.Add(strings.TrimPrefix(flag, allow)); err != nil {
			return nil, err
		}
	}
	return allowed, nil
}

const allow = "--allow="

// list returns what the storage has, by a Job like that of an audit.
func (w *world) list(ctx context.Context) ([]audit.Volume, error) {
	client := w.client()
	a := &run.Auditor{
		Client: client, Clock: w.clock, Dispatcher: w.trial.Serving.Dispatcher(), Namespace: w.trial.Serving.Namespace, Allowed: w.allowed,
		Cluster: run.Cluster{KubeAPI: w.api.URL(), UID: w.uid}, Timeout: w.trial.Config.Timeout,
	}
	classes, err := a.Classes(ctx, w.trial.Class.Name)
	if err != nil {
		return nil, err
	}
	if classes[0].Fault != nil {
		return nil, classes[0].Fault
	}
	return a.List(ctx, classes[0])
}

// tick is how long nothing must happen before time is skipped, and skipped how much.
const (
	tick    = 10 * time.Millisecond
	skipped = 500 * time.Millisecond
)
