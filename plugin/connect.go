package plugin

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/grants"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/internal/answerlimit"
)

// connection are the flags by which kubectl finds a cluster, and the one that names the dispatcher.
type connection struct {
	rules      *clientcmd.ClientConfigLoadingRules
	overrides  clientcmd.ConfigOverrides
	dispatcher string
}

func (c *connection) addFlags(f *pflag.FlagSet) {
	c.rules = clientcmd.NewDefaultClientConfigLoadingRules()
	f.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "kubeconfig file; default: $KUBECONFIG or ~/.kube/config")
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.ContextOverrideFlags.Namespace.ShortName = "n"
	clientcmd.BindOverrideFlags(&c.overrides, f, flags)
	f.StringVar(&c.dispatcher, "dispatcher", options.SystemNamespace+"/"+options.Name, "NAMESPACE/NAME of the dispatcher's Deployment")
}

// requestsPerSecond is the limit of requests to the API server: a command asks for a few dozen
// objects, and ends.
const requestsPerSecond = 100

// connect returns the configuration of a client, and the namespace of the context.
func (c *connection) connect() (*rest.Config, string, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides)
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("find the API server (use --kubeconfig or $KUBECONFIG): %w", err)
	}
	cfg.QPS, cfg.Burst = requestsPerSecond, 2*requestsPerSecond
	answerlimit.Wrap(cfg)
	rest.AddUserAgent(cfg, "kubectl-flex")
	namespace, _, err := loader.Namespace()
	return cfg, namespace, err
}

// at returns the name of the dispatcher's Deployment.
func (c *connection) at() (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(c.dispatcher, "/")
	if !ok || namespace == "" || name == "" {
		return types.NamespacedName{}, fmt.Errorf("--dispatcher=%s: must have the form NAMESPACE/NAME", c.dispatcher)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// clients returns what a command asks the API server by.
func clients(cfg *rest.Config) (kubernetes.Interface, *grants.Grants, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client: %w", err)
	}
	references, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client for ReferenceGrants: %w", err)
	}
	return client, grants.New(references, clock.RealClock{}), nil
}
