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

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
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
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/grants"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/internal/eventlimit"
)

// serve runs the controller until ctx ends or the lease is lost.
func (s *settings) serve(ctx context.Context, cfg *rest.Config) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := s.useClients(cfg, client); err != nil {
		return err
	}
	var ready atomic.Bool
	if err := s.listenHealth(ctx, &ready); err != nil { // before what may take long: a probe that finds no listener restarts the container
		return err
	}
	if err := s.checkAccess(ctx, client); err != nil {
		return err
	}
	if s.controller.ClusterUID, err = admin.ClusterUID(ctx, client); err != nil {
		return err
	}
	limit := eventlimit.New(eventsWaiting)
	recorder, stopEvents, err := recordEvents(ctx, cfg, limit, s.Provisioner)
	if err != nil {
		return err
	}
	defer stopEvents()
	c, err := controller.New(client, recorder, clock.RealClock{}, s.controller)
	if err != nil {
		return err
	}
	limit.Dropped = c.CountDroppedEvent // before the first event: none is emitted before Run
	c.RegisterMetrics(processMetrics{})
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
	return s.lead(ctx, cfg, c.Run)
}

// useClients gives the controller what it asks the API server beside its watches.
func (s *settings) useClients(cfg *rest.Config, client kubernetes.Interface) error {
	copies, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make a client for ReferenceGrants: %w", err)
	}
	s.controller.Grants = grants.New(copies, clock.RealClock{})
	if s.leaderElect {
		s.controller.NoteNamespaces = func(ctx context.Context) (*coordinationv1.Lease, []string, error) {
			return admin.NoteNamespaces(ctx, client, s.leaseNamespace, options.Name, s.controller.Namespaces)
		}
	}
	s.controller.MissingIn = admin.MissingIn(client)
	s.controller.ListJobs, err = listJobs(cfg, s.Provisioner)
	return err
}

// listJobs returns a function that lists the metadata of the dispatcher's Jobs in a namespace.
func listJobs(cfg *rest.Config, provisioner string) (func(ctx context.Context, namespace string) (*metav1.PartialObjectMetadataList, error), error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client for metadata: %w", err)
	}
	return func(ctx context.Context, namespace string) (*metav1.PartialObjectMetadataList, error) {
		return client.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: config.SelectRuns(provisioner)})
	}, nil
}

// checkAccess ends a dispatcher that lacks permissions, with an error that names them.
func (s *settings) checkAccess(ctx context.Context, client kubernetes.Interface) error {
	var lease types.NamespacedName
	if s.leaderElect {
		lease = types.NamespacedName{Namespace: s.leaseNamespace, Name: options.Name}
	}
	return admin.CheckAccess(ctx, client, s.Namespace, lease)
}

// Of the clients beside the controller's, each has a rate limiter of its own: events must not hold
// up the controller, nor either of them the renewal of the lease.
const (
	eventQPS, eventBurst = claimsPerSecond, 2 * claimsPerSecond // one event a claim
	// eventsWaiting is how many events may wait to be written, 20 s of work.
	eventsWaiting = 20 * eventQPS
	// eventWriters is how many events are written at once, so that eventQPS is reached where a write takes a tenth of a second.
	eventWriters = 8
	leaseQPS     = 5
)

// A replica looks at the lease every leaseRetryPeriod to 2.2 times that
// (leaderelection.JitterFactor). So it follows a leader that has released the lease after 1.1 s at
// most. It follows one that was killed after leaseDuration and 2.2 s: one pause until it sees the
// last renewal, and one after that has expired. It counts leaseDuration on its own clock, from when
// it saw the renewal, so clocks may differ. A leader that cannot renew ends after
// leaseRenewDeadline, which leaves room for clocks that run at different speeds. What this costs
// the API server are two writes a second of the leader, as much as the leases of 20 nodes, and two
// reads of each other replica.
const (
	leaseDuration      = 15 * time.Second
	leaseRenewDeadline = 10 * time.Second
	leaseRetryPeriod   = 500 * time.Millisecond
)

// clientFor makes a client with a rate limiter of its own.
func clientFor(cfg *rest.Config, qps float32, burst int) (kubernetes.Interface, error) {
	own := rest.CopyConfig(cfg)
	own.QPS, own.Burst = qps, burst
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return client, nil
}

// recordEvents starts writing events, through a client of their own. stop ends that.
func recordEvents(ctx context.Context, cfg *rest.Config, limit *eventlimit.Limit, provisioner string) (recorder *eventlimit.Recorder, stop func(), err error) {
	client, err := clientFor(cfg, eventQPS, eventBurst)
	if err != nil {
		return nil, nil, err
	}
	broadcaster := events.NewBroadcaster(limit.Sink())
	for range eventWriters {
		go limit.Write(ctx, &events.EventSinkImpl{Interface: client.EventsV1()})
	}
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, nil, fmt.Errorf("start recording events: %w", err)
	}
	return limit.Recorder(broadcaster.NewRecorder(scheme.Scheme, provisioner)), broadcaster.Shutdown, nil
}

// lead calls run while this replica holds the lease, and gives the lease back on the way out, so
// that another replica takes over at once. The elector's context outlives ctx, and ends when run
// has returned. The elector releases the lease as soon as its context ends: otherwise every rolling
// update would have two leaders for a moment.
func (s *settings) lead(ctx context.Context, cfg *rest.Config, run func(context.Context)) error {
	lock, id, err := s.lease(cfg)
	if err != nil {
		return err
	}
	electing, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	led := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: leaseDuration, RenewDeadline: leaseRenewDeadline, RetryPeriod: leaseRetryPeriod,
		ReleaseOnCancel: true,
		Name:            options.Name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				defer close(led)
				if ctx.Err() != nil {
					return // the process ends, and the lease came too late
				}
				leading, stop := context.WithCancel(leading)
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				klog.FromContext(ctx).Info("Leading", "identity", id)
				run(leading)
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("set up leader election: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		if elector.IsLeader() {
			<-led
		}
		release()
	})()
	elector.Run(electing)
	if ctx.Err() == nil {
		return errors.New("the lease was lost: another replica may be the leader now")
	}
	return nil
}

// lease returns the lock by which replicas elect a leader, and the name of this one.
func (s *settings) lease(cfg *rest.Config) (lock *resourcelock.LeaseLock, id string, err error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, "", fmt.Errorf("name this replica: %w", err)
	}
	own := rest.CopyConfig(cfg)
	own.Timeout = leaseRenewDeadline / 2 // one request that hangs must leave time for another
	client, err := clientFor(own, leaseQPS, 2*leaseQPS)
	if err != nil {
		return nil, "", err
	}
	id = host + "_" + string(uuid.NewUUID())
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: s.leaseNamespace, Name: options.Name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: id},
	}, id, nil
}

// What one client may cost the server of metrics and health checks, which every pod reaches that no
// NetworkPolicy keeps away. A scraper's headers are shorter, and it reads faster. Without limits, a
// hundred connections that sent a megabyte of headers each, and read no answer, had the dispatcher
// killed for its memory.
const (
	maxHealthHeader = 8 << 10
	healthTimeout   = 10 * time.Second
	maxScrapes      = 4 // at a time
)

// healthServer serves metrics and health checks within these limits.
func healthServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: maxHealthHeader,
		ReadHeaderTimeout: healthTimeout, ReadTimeout: healthTimeout, WriteTimeout: healthTimeout, IdleTimeout: healthTimeout,
	}
}

// listenHealth serves /metrics, /healthz, and /readyz once the caches are filled.
func (s *settings) listenHealth(ctx context.Context, ready *atomic.Bool) error {
	server := healthServer(healthHandler(ready))
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("listen for health checks: %w", err)
	}
	klog.FromContext(ctx).Info("Serving metrics and health checks", "address", listener.Addr().String())
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Failed to serve health checks")
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

// atMost answers 503 to the requests above so many at a time. Probes are no such requests, so no
// client starves them.
func atMost(n int, handler http.Handler) http.Handler {
	slots := make(chan struct{}, n)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			handler.ServeHTTP(w, r)
		default:
			http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
		}
	})
}

func healthHandler(ready *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", atMost(maxScrapes, legacyregistry.Handler()))
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "the caches are not synced yet", http.StatusServiceUnavailable)
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
