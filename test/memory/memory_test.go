package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
)

// envServer is set in the process that is measured: the URL of its API server.
const envServer = "MEMORY_SERVER"

// used is the memory of a process, in bytes.
type used struct {
	Heap uint64 // in use, after the garbage was collected
	RSS  uint64 // after free memory was released
	Peak uint64 // the largest RSS
}

func TestMain(m *testing.M) {
	if url := os.Getenv(envServer); url != "" {
		if err := dispatch(url); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// dispatch runs a leading dispatcher until its caches are filled and its queue has been worked off,
// and prints the memory that it uses then.
func dispatch(url string) error {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: url})
	if err != nil {
		return err
	}
	c, err := controller.New(client, events.NewFakeRecorder(1000), clock.RealClock{}, controller.Options{
		Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespaces: []string{"flex-provisioner"}, Workers: 10,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Minute)
	defer stop()
	if !c.Start(ctx) {
		return ctx.Err()
	}
	go c.Run(ctx)
	awaitIdle(ctx)
	text, err := json.Marshal(usedNow())
	if err != nil {
		return err
	}
	runtime.KeepAlive(c)
	_, err = os.Stdout.Write(text)
	return err
}

// awaitIdle waits until the queue has been worked off. A dispatcher that has nothing to do
// allocates next to nothing.
func awaitIdle(ctx context.Context) {
	const perSecond = 10_000
	var m runtime.MemStats
	for before := uint64(0); ctx.Err() == nil; before = m.Mallocs {
		time.Sleep(time.Second)
		if runtime.ReadMemStats(&m); before > 0 && m.Mallocs-before < perSecond {
			return
		}
	}
}

func usedNow() used {
	runtime.GC() // what pools hold is free after the second time only
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return used{Heap: m.HeapAlloc, RSS: fromStatus("VmRSS:"), Peak: fromStatus("VmHWM:")}
}

// fromStatus returns what the kernel says of this process, in bytes.
func fromStatus(field string) uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return kernelSays(string(text), field)
}

// kernelSays returns a field of /proc/PID/status, in bytes.
func kernelSays(status, field string) uint64 {
	for line := range strings.Lines(status) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == field {
			kib, _ := strconv.ParseUint(words[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// shipped returns the memory limit of the dispatcher's Deployment, and the GOMEMLIMIT of its
// container.
func shipped(t *testing.T) (limit uint64, soft string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/base/dispatcher.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(part), &d); err != nil || d.Kind != "Deployment" {
			continue
		}
		container := d.Spec.Template.Spec.Containers[0]
		for _, env := range container.Env {
			if env.Name == "GOMEMLIMIT" {
				soft = env.Value
			}
		}
		return uint64(container.Resources.Limits.Memory().Value()), soft
	}
	t.Fatal("there is no Deployment")
	return 0, ""
}

// Without it Go lets as much garbage grow as there is live memory, beyond the limit of the
// container.
func TestTheCollectorKnowsTheShippedLimit(t *testing.T) {
	limit, soft := shipped(t)
	quantity, err := resource.ParseQuantity(strings.TrimSuffix(soft, "B"))
	if err != nil {
		t.Fatalf("GOMEMLIMIT %q: %v", soft, err)
	}
	if got := uint64(quantity.Value()); got < limit*85/100 || got > limit*95/100 {
		t.Errorf("GOMEMLIMIT is %s, and the limit %d MiB: want nine tenths", soft, limit>>20)
	}
}

func TestMemory(t *testing.T) {
	_ = kubeFor(t, plan.Memory)
	limit, soft := shipped(t)
	none := measure(t, lot{}, soft)
	t.Logf("without objects: heap %d MiB, RSS %d MiB", none.Heap>>20, none.RSS>>20)
	for name, l := range map[string]lot{
		"100,000 bound claims with their PVs, 1,000 waiting, each with 2 KiB of annotations": {bound: 100_000, waiting: 1000, text: 2 << 10},
		"2,000 waiting claims with 250 KiB of annotations":                                   {waiting: 2000, text: 250 << 10},
		"2,000 bound claims with 250 KiB of annotations":                                     {bound: 2000, text: 250 << 10},
		"the 100,000, where the API server streams no lists":                                 {bound: 100_000, waiting: 1000, text: 2 << 10, lists: true},
		"the 2,000 waiting ones, where it does not":                                          {waiting: 2000, text: 250 << 10, lists: true},
	} {
		u := measure(t, l, soft)
		t.Logf("%s: %d bytes a claim; heap %d MiB, RSS %d MiB, at most %d MiB while the caches were filled; the shipped limit is %d MiB",
			name, (u.Heap-none.Heap)/uint64(l.bound+l.waiting), u.Heap>>20, u.RSS>>20, u.Peak>>20, limit>>20)
		if u.RSS > limit/2 {
			t.Errorf("%s need more than half of the limit", name)
		}
		if u.Peak > limit {
			t.Errorf("%s need more than the limit while the caches are filled", name)
		}
	}
}

// measure returns what a dispatcher needs in a cluster.
func measure(t *testing.T, l lot, soft string) used {
	t.Helper()
	server := serve(t, l)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), envServer+"="+server.URL, "GOMEMLIMIT="+soft)
	child.Stderr = os.Stderr
	out, err := child.Output()
	if err != nil {
		t.Fatal(err)
	}
	var u used
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&u); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return u
}
