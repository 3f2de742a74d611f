package main

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/process"
)

// benchOf returns a benchmark with a watcher, in a cluster in which claims are bound as soon as
// they are made if they are to be.
func benchOf(t *testing.T, binds bool) *bench {
	t.Helper()
	client := fake.NewClientset()
	w, err := startWatcher(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	create := func(ctx context.Context, name string) error {
		claim := claimOf(name, className, nil)
		if binds {
			claim.Status.Phase = corev1.ClaimBound
		}
		_, err := client.CoreV1().PersistentVolumeClaims(benchNamespace).Create(ctx, claim, metav1.CreateOptions{})
		return err
	}
	return &bench{
		settings: settings{patience: 200 * time.Millisecond, logs: t.TempDir(), bin: "/bin"},
		cluster:  &cluster{client: client}, subject: &subject{create: create}, watcher: w,
	}
}

func TestABurstEndsWhenAllClaimsAreBound(t *testing.T) {
	b := benchOf(t, true)
	b.patience = time.Minute
	phase, err := b.burst(t.Context(), b.watcher.provisioned, b.subject.create, names("claim", 100))
	if err != nil || len(phase.Done) != 100 || len(phase.Took) != 100 || phase.Rate() == 0 {
		t.Errorf("%v, %v", phase, err)
	}
}

func TestABurstSaysHowManyClaimsWereNotDoneInTime(t *testing.T) {
	b := benchOf(t, false)
	_, err := b.burst(t.Context(), b.watcher.provisioned, b.subject.create, names("claim", 3))
	if err == nil || !strings.Contains(err.Error(), "3 of 3 claims were not done") {
		t.Errorf("%v", err)
	}
}

func TestABurstFailsWhenTheProvisionerHasEnded(t *testing.T) {
	b := benchOf(t, false)
	b.patience = time.Minute
	b.cell = plan.Cell{Column: plan.Stock, Row: plan.Row{Name: "broken"}}
	p, err := b.start(t.Context(), "false")
	if err != nil {
		t.Fatal(err)
	}
	b.subject.programs = []*process.Program{p}
	if _, err = b.burst(t.Context(), b.watcher.provisioned, b.subject.create, names("claim", 3)); err == nil || !strings.Contains(err.Error(), "false ended") {
		t.Errorf("%v", err)
	}
}

func TestAProgramEndsWithItsSubject(t *testing.T) {
	b := benchOf(t, false)
	ctx, stop := context.WithCancel(t.Context())
	p, err := b.start(ctx, "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	(&subject{programs: []*process.Program{p}}).end(stop)
	if took := time.Since(started); took > process.Grace {
		t.Errorf("it took %v", took)
	}
}
