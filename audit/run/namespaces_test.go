package run_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// runIn returns a Job that never starts and a pod that may run, both with what the dispatcher would
// write for the claim: the eighth delete of its volume. by is the provisioner that they name, if any.
func runIn(namespace, by string) []runtime.Object {
	labels := map[string]string{
		config.LabelManagedBy: config.ManagedBy, jobs.LabelVerb: "delete", jobs.LabelMember + claimUID: "", contract.LabelClaimUID: claimUID,
	}
	if by != "" {
		labels[config.LabelProvisioner] = by
	}
	meta := metav1.ObjectMeta{
		Namespace: namespace, Name: "delete-" + claimUID + "-8", CreationTimestamp: metav1.NewTime(time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)),
		Labels: labels, Annotations: map[string]string{jobs.AnnUIDs: claimUID}, Finalizers: []string{jobs.FinalizerRecord},
	}
	return []runtime.Object{
		&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Suspend: new(true)}},
		&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "node-1"}},
	}
}

// kinds returns the kinds of what is wrong when the storage lists the volume of a deleted claim.
func (l *lab) kinds() []audit.Kind {
	l.t.Helper()
	s, err := l.ReadState(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	s.Volumes = map[string][]audit.Volume{"gold": {{UID: claimUID, Volume: "v1", Namespace: "app", Name: "data", Class: "gold", ClusterUID: clusterID}}}
	var out []audit.Kind
	for _, f := range audit.Check(s) {
		out = append(out, f.Kind)
	}
	return out
}

// Whoever may create Jobs in any namespace may write a Job as the dispatcher does. It once hid the
// findings about every claim that it named.
func TestAJobOrPodIsBelievedOnlyWhereADispatcherServes(t *testing.T) {
	t.Parallel()
	named := func(provisioner string) *storagev1.StorageClass {
		out := class("team")
		out.Provisioner, out.Parameters = provisioner, map[string]string{contract.ParamConfigNamespace: "team"}
		return out
	}
	made := func(by string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "other", Annotations: map[string]string{
			contract.AnnClaimUID: otherUID, contract.AnnProvisionedBy: by, contract.AnnRevision: "team/gold-1",
		}}}
	}
	noted := func(namespace string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "flex-dispatcher", Annotations: map[string]string{config.AnnNamespaces: "flex-provisioner, team"},
		}}
	}
	const other = "other.example.com"
	unserved := []audit.Kind{audit.JobUnserved, audit.PodUnserved, audit.VolumeLeft}
	for name, test := range map[string]struct {
		exist []runtime.Object
		flag  []string
		want  []audit.Kind
	}{
		"nothing names its namespace":                     {runIn("team", ""), nil, unserved},
		"nothing names that of another provisioner's Job": {runIn("team", other), nil, []audit.Kind{audit.VolumeLeft}},
		"it is that of the configs":                       {runIn("flex-provisioner", ""), nil, nil},
		"a class names it":                                {append(runIn("team", ""), named(contract.ProvisionerName)), nil, nil},
		"a class of another provisioner names it":         {append(runIn("team", other), named(other)), nil, nil},
		"the revision of a PV names it":                   {append(runIn("team", ""), made(contract.ProvisionerName)), nil, nil},
		"that of another provisioner's PV names it":       {append(runIn("team", other), made(other)), nil, nil},
		"the leader's Lease names it":                     {append(runIn("team", ""), noted("flex-system")), nil, nil},
		"a Lease of its own names it":                     {append(runIn("team", ""), noted("team")), nil, unserved},
		"--config-namespaces names it":                    {runIn("team", ""), []string{"team"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, nil, func(l *lab) {
				l.Lease, l.ConfigNamespaces = types.NamespacedName{Namespace: "flex-system", Name: "flex-dispatcher"}, test.flag
				if got := l.kinds(); !slices.Equal(got, test.want) {
					l.t.Errorf("found %v, want %v", got, test.want)
				}
			}, test.exist...)
		})
	}
}

// Neither its record nor its number is anything to a delete.
func TestAJobOfATenantHoldsUpNoFix(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]string{"tenant": "was deleted", "flex-provisioner": "a run of it has appeared"} {
		t.Run(namespace, func(t *testing.T) {
			inLab(t, nil, func(l *lab) {
				l.ends(0, "", "")
				gated := l.started
				l.started = func(job *batchv1.Job) {
					if job.Name != "delete-"+claimUID+"-1" {
						l.t.Errorf("the Job is %s", job.Name)
					}
					gated(job)
				}
				if said, _ := l.fixing(left(func(*audit.Volume) {})); !strings.Contains(said, want) {
					l.t.Errorf("said %q, want %q", said, want)
				}
			}, runIn(namespace, "")...)
		})
	}
}

// Without the Lease a Job of the dispatcher could be taken for a tenant's.
func TestAnAuditThatCannotReadTheLeaseSaysSo(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		l.Lease = types.NamespacedName{Namespace: "flex-system", Name: "flex-dispatcher"}
		l.client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(coordinationv1.Resource("leases"), "flex-dispatcher", nil)
		})
		if _, err := l.ReadState(l.t.Context()); err == nil || !strings.Contains(err.Error(), "the Lease flex-system/flex-dispatcher") {
			l.t.Errorf("the error is %v", err)
		}
	})
}
