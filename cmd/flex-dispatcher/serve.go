package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection" // who leads
	_ "k8s.io/component-base/metrics/prometheus/workqueue"               // depth, latency and retries of the queue
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
)

// leaseName is shared by all replicas of one provisioner.
const leaseName = "flex-dispatcher"

// serve runs the controller until ctx ends or the lease is lost.
func (s *settings) serve(ctx context.Context, cfg *rest.Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	copies, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make a client for ReferenceGrants: %w", err)
	}
	s.controller.Grants = cluster.NewReferenceGrants(copies, clock.RealClock{})
	if s.leaderElect {
		s.controller.Lease = leaseName
	}
	s.controller.MissingIn = admin.MissingIn(client)
	if err := admin.CheckAccess(ctx, client, s.namespace, s.controller.Lease); err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("start recording events: %w", err)
	}
	defer broadcaster.Shutdown()
	c, err := controller.New(client, broadcaster.NewRecorder(scheme.Scheme, s.controller.Provisioner), clock.RealClock{}, s.controller)
	if err != nil {
		return err
	}
	c.RegisterMetrics(processMetrics{})
	var ready atomic.Bool
	if err := s.listenHealth(ctx, &ready); err != nil {
		return err
	}
	defer c.Stopped()
	defer stop() // before Stopped, which waits for the watches to end
	if !c.Start(ctx) {
		return ctx.Err()
	}
	ready.Store(true)
	if !s.leaderElect {
		c.Run(ctx)
		return nil
	}
	return s.lead(ctx, client, c)
}

// lead runs the controller while this replica holds the lease, and releases it when it ends, so
// that another replica takes over at once.
func (s *settings) lead(ctx context.Context, client kubernetes.Interface, c *controller.Controller) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this replica: %w", err)
	}
	id := host + "_" + string(uuid.NewUUID())
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: s.namespace, Name: leaseName},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: id},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true,
		Name:            leaseName,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				klog.FromContext(ctx).Info("leading", "identity", id)
				c.Run(ctx)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("set up leader election: %w", err)
	}
	elector.Run(ctx)
	if ctx.Err() == nil {
		return errors.New("the lease was lost: another replica may lead now")
	}
	return nil
}

// listenHealth serves /metrics, /healthz, and /readyz once the caches are filled.
func (s *settings) listenHealth(ctx context.Context, ready *atomic.Bool) error {
	server := &http.Server{Handler: healthHandler(ready), ReadHeaderTimeout: 5 * time.Second}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("listen for health checks: %w", err)
	}
	klog.FromContext(ctx).Info("serving metrics and health checks", "address", listener.Addr().String())
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "health checks are not served any more")
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

func healthHandler(ready *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", legacyregistry.Handler())
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "the caches are not filled yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// processMetrics is the process's own registry, in which client-go's series are as well.
type processMetrics struct{}

// MustRegister adds series that are kept.
func (processMetrics) MustRegister(m ...metrics.Registerable) { legacyregistry.MustRegister(m...) }

// CustomMustRegister adds series that are counted when they are asked for.
func (processMetrics) CustomMustRegister(m ...metrics.StableCollector) {
	legacyregistry.CustomMustRegister(m...)
}
