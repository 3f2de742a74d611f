package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/answerlimit"
	"github.com/flex-provisioner/flex-provisioner/internal/version"
)

// namespaceFile tells a pod its own namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Namespaces of the shipped manifests. The dispatcher has one of its own: whoever creates pods
// where its ServiceAccount is becomes the dispatcher, and configs make pods.
const (
	systemNamespace = "flex-system"
	configNamespace = "flex-provisioner"
)

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
	kubeconfig       string
	namespace        string
	leaseNamespace   string
	configNamespaces []string
	allow            []string
	listen           string
	leaderElect      bool
	qps              float32
	burst            int
	controller       controller.Options
	logs             *logsapi.LoggingConfiguration
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
	f.StringVar(&s.namespace, "namespace", configNamespace, "namespace of configs and their Jobs")
	f.StringSliceVar(&s.configNamespaces, "config-namespaces", nil, "additional namespaces of configs; a class names its namespace by the parameter "+contract.ParamConfigNamespace)
	f.StringVar(&s.controller.Provisioner, "provisioner-name", contract.ProvisionerName, "provisioner name in StorageClasses")
	s.addAllow(f)
	f.StringVar(&s.controller.KubeAPI, "kube-api", "", "URL of the API server for images; default: the URL that the dispatcher uses")
	f.BoolVar(&s.controller.TrustUsername, "trust-username", false, "pass the annotated username and groups of a claim's creator to images; requires the admission policies that write and protect the annotations")
	f.BoolVar(&s.controller.AheadOfBinder, "ahead-of-binder", true, "provision a claim before kube-controller-manager has annotated it, if no PersistentVolume exists for it; set to false if kube-controller-manager has --enable-dynamic-provisioning=false")
	f.IntVar(&s.controller.Workers, "workers", 10, "number of claims that are reconciled in parallel")
	f.StringVar(&s.listen, "listen", ":8080", "address of /metrics, /healthz and /readyz")
	f.BoolVar(&s.leaderElect, "leader-elect", true, "wait for the lease before reconciling claims")
	f.StringVar(&s.leaseNamespace, "leader-elect-resource-namespace", ownNamespace(), "namespace of the leader election lease")
	f.Float32Var(&s.qps, "kube-api-qps", defaultQPS, "maximum number of requests per second to the API server")
	f.IntVar(&s.burst, "kube-api-burst", 2*defaultQPS, "maximum burst of requests to the API server")
	logsapi.AddFlags(s.logs, f)
}

// addAllow adds the flag --allow, of the dispatcher and of the commands that judge configs as it
// does.
func (s *settings) addAllow(f *pflag.FlagSet) {
	f.StringArrayVar(&s.allow, "allow", nil, "permission for pods beyond Pod Security restricted: NAMESPACE/host-path=/PATH, NAMESPACE/run-as-user=UID, NAMESPACE/capability=NAME or NAMESPACE/host-network=true; may be repeated")
}

// allowances reads what --allow says.
func (s *settings) allowances() (jobs.Allowances, error) {
	out := jobs.Allowances{}
	for _, text := range s.allow {
		if err := out.Add(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ownNamespace returns the pod's namespace. Outside a pod it is the one in which the shipped
// Deployment elects its leader.
func ownNamespace() string {
	if b, err := os.ReadFile(namespaceFile); err == nil {
		return strings.TrimSpace(string(b))
	}
	return systemNamespace
}

// complete checks the flags and fills in what they leave open.
func (s *settings) complete(cfg *rest.Config) error {
	s.controller.Namespaces = []string{s.namespace}
	for _, ns := range s.configNamespaces {
		if !slices.Contains(s.controller.Namespaces, ns) {
			s.controller.Namespaces = append(s.controller.Namespaces, ns)
		}
	}
	var err error
	if s.controller.Allowed, err = s.allowances(); err != nil {
		return err
	}
	if s.controller.KubeAPI == "" {
		s.controller.KubeAPI = cfg.Host
	}
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
