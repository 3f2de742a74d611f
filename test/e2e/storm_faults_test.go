//go:build e2e && storms

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a storm breaks, and how it is there again.

func (s *storm) planFaults() {
	s.w.t.Helper()
	s.needsASmallDisk()
	var apiserver, cinder, dispatchers []act
	for _, at := range s.moments(3) {
		pause := s.pause()
		apiserver = append(apiserver, act{at, fmt.Sprintf("kube-apiserver is killed for %s", pause), s.kills("kube-apiserver", pause)})
	}
	for _, at := range s.moments(3) {
		pause := s.pause()
		cinder = append(cinder, act{at, fmt.Sprintf("Cinder is killed for %s", pause), killsCinder(pause)})
	}
	for _, at := range s.moments(3) {
		dispatchers = append(dispatchers, act{at, "all dispatchers are killed", killsAllDispatchers})
	}
	s.add(apiserver...)
	s.add(s.faultsOfEtcd()...)
	s.add(cinder...)
	s.add(dispatchers...)
	s.add(s.faultsOfAClock()...)
	s.w.whenDone(s.repair)
}

// faultsOfEtcd are three deaths, and a full disk before, between or after them.
func (s *storm) faultsOfEtcd() []act {
	var out []act
	full := s.random.IntN(4)
	for i, at := range s.moments(4) {
		pause := s.pause()
		if i == full {
			out = append(out, act{at, fmt.Sprintf("etcd's disk is full for %s", pause), s.fillsEtcdsDisk(pause)})
			continue
		}
		out = append(out, act{at, fmt.Sprintf("etcd is killed for %s", pause), s.kills("etcd", pause)})
	}
	return out
}

// faultsOfAClock: the clock of a node is off for at least half of the storm.
func (s *storm) faultsOfAClock() []act {
	node, by := nodes[s.random.IntN(len(nodes))], wrongBy
	if s.random.IntN(2) == 0 {
		by = -by
	}
	var wrong *clock
	setRight := sync.OnceValue(func() error { return wrong.setRight() })
	s.w.whenDone(func() {
		if wrong != nil && setRight() != nil {
			s.w.t.Errorf("the clock of node%s: %v", node, setRight())
		}
	})
	off := func(ctx context.Context) (err error) {
		if wrong, err = setClockOff(node, by); err != nil {
			return err
		}
		return clockShows(ctx, node, by)
	}
	right := func(ctx context.Context) error {
		if wrong == nil {
			return errors.New("it was never off")
		}
		return errors.Join(setRight(), clockShows(ctx, node, 0))
	}
	return []act{
		{s.between(0, stormLasts/4), fmt.Sprintf("the clock of node%s is off by %s", node, by), off},
		{s.between(stormLasts*3/4, stormLasts), fmt.Sprintf("the clock of node%s is right again", node), right},
	}
}

// clockShows waits until a node's kubelet writes that it is so much later.
func clockShows(ctx context.Context, node string, by time.Duration) error {
	return pollEvery(ctx, time.Second, toAnswer, func(ctx context.Context) error {
		lease, err := kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "node"+node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if off := time.Until(lease.Spec.RenewTime.Time) - by; off.Abs() > time.Minute {
			return fmt.Errorf("the kubelet of node%s has written %s", node, lease.Spec.RenewTime)
		}
		return nil
	})
}

// script runs one of the lab's.
func control(ctx context.Context, what, component string) error {
	return script(ctx, "../cluster/control.sh", what, component)
}

// kills is an act: a component of the control plane dies, and is started again after a pause.
func (s *storm) kills(component string, pause time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		isStarted := func(ctx context.Context) error { return s.serves(ctx, component) }
		if err := killsRunning(ctx, isStarted, "../cluster/control.sh", "kill", component); err != nil {
			return err
		}
		time.Sleep(pause)
		return s.serves(ctx, component)
	}
}

// killsRunning runs the script that kills something. What does not run, as it has given up while
// another part was missing, is started and killed then.
func killsRunning(ctx context.Context, start func(context.Context) error, path string, args ...string) error {
	return pollEvery(ctx, time.Second, toAnswer, func(ctx context.Context) error {
		err := script(ctx, path, args...)
		if err != nil {
			err = errors.Join(err, start(ctx))
		}
		return err
	})
}

// serves starts a component and waits until it serves. It is started again if it gives up as
// another is missing, as are those that depend on the API server.
func (s *storm) serves(ctx context.Context, component string) error {
	if component == "etcd" {
		return startsUntil(ctx, component, etcdServes)
	}
	began := time.Now()
	err := startsUntil(ctx, component, func(ctx context.Context) error {
		return kube.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	beginnings = append(beginnings, period{began, time.Now().Add(15 * time.Second)}) // of one thread only
	return errors.Join(err, control(ctx, "start", "kube-controller-manager"), control(ctx, "start", "kube-scheduler"))
}

func startsUntil(ctx context.Context, component string, isServed func(context.Context) error) error {
	return pollEvery(ctx, time.Second, toServe, func(ctx context.Context) error {
		if err := control(ctx, "start", component); err != nil {
			return err
		}
		return isServed(ctx)
	})
}

func etcdServes(ctx context.Context) error {
	_, err := page(ctx, "http://127.0.0.1:12379/health")
	return err
}

// etcdsDisk is the file system of etcd's data, and filler a file in it.
func etcdsDisk() (dir, filler string) {
	dir = filepath.Join(labState(), "kube", "etcd")
	return dir, filepath.Join(dir, "filler")
}

// needsASmallDisk keeps the machine's own from being filled.
func (s *storm) needsASmallDisk() {
	s.w.t.Helper()
	dir, _ := etcdsDisk()
	var disk syscall.Statfs_t
	s.w.must(syscall.Statfs(dir, &disk), "look at etcd's disk")
	if size := int64(disk.Blocks) * disk.Bsize; size > 4<<30 {
		s.w.t.Fatalf("etcd's disk has %d GB: start the cluster with FLEX_ETCD_SIZE=1g, as hack/e2e-long.sh does", size>>30)
	}
}

// fillsEtcdsDisk is an act: a file takes all room on etcd's disk, so that etcd ends. After a pause
// the file is deleted, and etcd started again.
func (s *storm) fillsEtcdsDisk(pause time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		_, filler := etcdsDisk()
		err := fill(filler)
		if err == nil {
			err = s.etcdHasNoRoom(ctx)
		}
		time.Sleep(pause)
		return errors.Join(err, os.Remove(filler), s.serves(ctx, "etcd"))
	}
}

// fill writes a file until there is no room for another byte.
func fill(name string) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, size := range []int{1 << 20, 1 << 10} {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}
	if errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	return err
}

// etcdHasNoRoom writes until etcd does not serve any more, and its log says why.
func (s *storm) etcdHasNoRoom(ctx context.Context) error {
	data := make([]byte, 512<<10)
	return pollEvery(ctx, 100*time.Millisecond, 2*time.Minute, func(ctx context.Context) error {
		_, _ = rand.Read(data) // it never fails
		s.write(ctx, data)
		log, err := os.ReadFile(filepath.Join(labState(), "kube", "log", "etcd.log"))
		switch {
		case err != nil:
			return err
		case !bytes.Contains(log, []byte("no space left on device")):
			return errors.New("etcd's log does not say that its disk is full")
		case etcdServes(ctx) == nil:
			return errors.New("etcd serves on a full disk")
		}
		return nil
	})
}

// write has etcd store something, if it can.
func (s *storm) write(ctx context.Context, data []byte) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "large-"}, BinaryData: map[string][]byte{"data": data}}
	_, _ = kube.CoreV1().ConfigMaps(s.w.ns).Create(ctx, large, metav1.CreateOptions{})
}

// killsCinder is an act. Started again, it looks at all of its volumes before it serves, which may
// take longer than its script waits for.
func killsCinder(pause time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := killsRunning(ctx, startCinder, "../cinder/service.sh", "kill", "cinder"); err != nil {
			return err
		}
		time.Sleep(pause)
		return startCinder(ctx)
	}
}

// killsAllDispatchers is an act. The kubelets start them again, after a pause that grows.
func killsAllDispatchers(ctx context.Context) error {
	return pollEvery(ctx, time.Second, toAnswer, func(ctx context.Context) error {
		found, running := map[string][]string{}, 0
		for _, node := range nodes {
			pids, err := dispatchers(ctx, node)
			if err != nil {
				return err
			}
			found[node], running = pids, running+len(pids)
		}
		if running < dispatcherNumber {
			return fmt.Errorf("%d dispatchers run", running)
		}
		for node, pids := range found {
			if len(pids) == 0 {
				continue
			}
			if _, err := onNode(ctx, node, append([]string{"kill", "-KILL"}, pids...)...); err != nil {
				return fmt.Errorf("kill the dispatchers on node%s: %w", node, err)
			}
		}
		return nil
	})
}

// repair starts and frees what a test that has failed may have left broken.
func (s *storm) repair() {
	s.w.t.Helper()
	_, filler := etcdsDisk()
	_ = os.Remove(filler) // mostly it is not there
	for _, component := range []string{"etcd", "kube-apiserver"} {
		s.w.must(s.serves(s.w.ctx(), component), "start "+component)
	}
	s.w.must(startCinder(s.w.ctx()), "start Cinder")
	s.w.eventually(toAnswer, "the dispatchers to be ready", dispatchersReady)
}
