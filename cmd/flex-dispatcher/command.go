package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/internal/answerlimit"
	"github.com/flex-provisioner/flex-provisioner/internal/version"
)

// namespaceFile tells a pod its own namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// What a claim with a Job of its own costs, and how many of them are to be served in a second. That
// is about twice what kube-controller-manager makes of Jobs with ten times its default requests, so
// a burst does not wait for the dispatcher.
const (
	writesPerClaim  = 5
	claimsPerSecond = 80
	defaultQPS      = writesPerClaim * claimsPerSecond
)

// settings are the flags.
type settings struct {
	options.Serving

	kubeconfig     string
	leaseNamespace string
	listen         string
	leaderElect    bool
	qps            float32
	burst          int
	controller     controller.Options
	logs           *logsapi.LoggingConfiguration
}

func command() *cobra.Command {
	s := &settings{logs: logsapi.NewLoggingConfiguration()}
	cmd := &cobra.Command{
		Use:   "flex-dispatcher",
		Short: "Provision Kubernetes volumes by running a container per claim",
		Long: "flex-dispatcher watches PersistentVolumeClaims, finds the provisioner config of their storage class,\n" +
			"runs that config's image in a Job, and records the result on the claim.",
		Version:      version.Get().String(),
		Args:         cobra.NoArgs,
		SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(s.logs, nil); err != nil {
				return fmt.Errorf("logging flags: %w", err)
			}
			return endsWhenAsked(cmd.Context(), s.run(cmd.Context()))
		},
	}
	s.addFlags(cmd.Flags())
	cmd.AddCommand(uninstall(), auditCommand())
	return cmd
}

func (s *settings) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig file; default: the pod's ServiceAccount")
	s.AddFlags(f)
	f.BoolVar(&s.controller.TrustUsername, "trust-username", false, "pass the annotated username and groups of a claim's creator to images; requires the admission policies that write and protect the annotations")
	f.IntVar(&s.controller.Workers, "workers", 10, "number of claims that are reconciled in parallel, and of Jobs and classes beside them")
	f.StringVar(&s.listen, "listen", ":8080", "address of /metrics, /healthz and /readyz")
	f.BoolVar(&s.leaderElect, options.FlagElect, true, "wait for the lease before reconciling claims")
	f.StringVar(&s.leaseNamespace, options.FlagElectNamespace, ownNamespace(), "namespace of the leader election lease")
	f.Float32Var(&s.qps, "kube-api-qps", defaultQPS, "maximum number of requests per second to the API server")
	f.IntVar(&s.burst, "kube-api-burst", 2*defaultQPS, "maximum burst of requests to the API server")
	logsapi.AddFlags(s.logs, f)
}

// ownNamespace returns the pod's namespace. Outside a pod it is the one in which the shipped
// Deployment elects its leader.
func ownNamespace() string {
	if b, err := os.ReadFile(namespaceFile); err == nil {
		return strings.TrimSpace(string(b))
	}
	return options.SystemNamespace
}

// complete checks the flags and fills in what they leave open.
func (s *settings) complete(cfg *rest.Config) error {
	s.controller.Dispatcher, s.controller.Namespaces, s.controller.AheadOfBinder = s.Dispatcher(), s.Namespaces(), s.AheadOfBinder
	var err error
	if s.controller.Allowed, err = s.Allowances(); err != nil {
		return err
	}
	s.controller.KubeAPI = cmp.Or(s.KubeAPI, cfg.Host)
	if s.controller.Workers < 1 {
		return fmt.Errorf("--workers=%d: must be at least 1", s.controller.Workers)
	}
	return nil
}

// connect finds the API server: by --kubeconfig, or as a pod does.
func (s *settings) connect() (*rest.Config, error) {
	find := rest.InClusterConfig
	if s.kubeconfig != "" {
		find = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", s.kubeconfig) }
	}
	cfg, err := find()
	if err != nil {
		return nil, fmt.Errorf("find the API server (outside a cluster, use --kubeconfig): %w", err)
	}
	answerlimit.Wrap(cfg)
	return cfg, nil
}

// adminKubeconfig is the usage of --kubeconfig of commands for administrators.
const adminKubeconfig = "kubeconfig file; default: $KUBECONFIG, ~/.kube/config, or the ServiceAccount of the pod"

// connectAsAdmin finds the API server as kubectl does: by --kubeconfig, $KUBECONFIG or
// ~/.kube/config, or as a pod does.
func (s *settings) connectAsAdmin() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server (use --kubeconfig or $KUBECONFIG): %w", err)
	}
	answerlimit.Wrap(cfg)
	return cfg, nil
}

func (s *settings) run(ctx context.Context) error {
	cfg, err := s.connect()
	if err != nil {
		return err
	}
	cfg.QPS, cfg.Burst = s.qps, s.burst
	// Decompressing took an eighth of the processor time until the caches of 100,000 claims were
	// filled. The network carries more for that. Kubernetes' own controllers do the same
	// (cmd/kube-controller-manager/app/options, Config).
	cfg.DisableCompression = true
	rest.AddUserAgent(cfg, "flex-dispatcher")
	if err := s.complete(cfg); err != nil {
		return err
	}
	build := version.Get()
	klog.FromContext(ctx).Info("starting", "version", build.Version, "commit", build.Commit, "go", build.Go,
		"provisioner", s.controller.Provisioner, "namespaces", s.controller.Namespaces)
	s.logNoCreators(klog.FromContext(ctx))
	return s.serve(ctx, cfg)
}

// logNoCreators says once that images get no user name, and how to have it: an image that bills or
// limits users would otherwise take all claims for those of one user.
func (s *settings) logNoCreators(log klog.Logger) {
	if !s.controller.TrustUsername {
		log.Info("Images get no user name and no groups: --trust-username is not set. From Kubernetes 1.36 on, deploy/claim-creator sets it")
	}
}
