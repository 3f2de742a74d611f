package config

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Config is how the claims of one storage class are served.
type Config struct {
	// Source is what the Config was read from.
	Source Source

	Image string
	// Script is the text of the program that the container runs, empty for that of the image. Each is
	// set if flex runs it, once for each request. Otherwise it is itself the container's program.
	Script         string
	Each           bool
	PullPolicy     corev1.PullPolicy // empty: Kubernetes' default
	Verbs          []contract.Verb
	ServiceAccount string
	RunOn          RunOn
	NodeGone       NodeGone      // with RunOnSelected: what to do if the volume's node no longer exists
	EnvSecret      string        // its keys become variables, verbatim
	FilesSecret    string        // its keys become files in contract.SecretDir
	Template       []byte        // a PodTemplateSpec in JSON, decoded strictly once and without nulls; empty: none
	Timeout        time.Duration // of one run
	MaxAttempts    int           // 0: no limit
	MaxParallel    int           // containers of the class that may be at work, or scripts in them
	BatchSize      int           // requests that one provision Job may serve
	LaterBatch     int           // requests that one Job of another verb may serve
	Clones         bool          // the image can clone a claim
	Writer         Writer        // who writes the PV
	// AttributesClasses is set if the image's PVs can have a volumeAttributesClassName.
	AttributesClasses bool
	RequestKeys       []string // labels and annotations of the claim that are part of its request, sorted
	// Properties of the config and parameters of the class, for the container.
	Properties map[string]string
	// Scheduling is what of the pod says where it goes and what it needs there. It has the node
	// selector, with that of the template, affinity, tolerations, scheduler, priority and pull
	// secrets. It also has the resources of the pod and of the container.
	Scheduling corev1.PodSpec
	// onNodes is set if the nodes that the config selects may be the storage. The runs use the
	// files, the network or the processes of their node, and nothing else says which node that is.
	onNodes bool
	// Warnings are not faults: the config is used, but its administrator should know them.
	Warnings []string
}

// RunOn says which nodes may run the provisioning container.
type RunOn string

// The values of the key run-on.
const (
	RunAnywhere   RunOn = "any"
	RunOnSelected RunOn = "selected-node"
)

const (
	defaultTimeout  = 10 * time.Minute
	defaultParallel = 20
	// propServiceToken is the original design's property for a credential.
	propServiceToken = "service-token"
	// propNamespace is a property of images that are older than the key namespaces.
	propNamespace = "namespace"
)

// NodeGone says how a volume is deleted, undone or expanded whose node no longer exists.
type NodeGone string

// The values of the key node-gone.
const (
	WaitForNode  NodeGone = "wait"     // wait until the node is back, or for an administrator
	AnyNode      NodeGone = "any-node" // run anywhere: the storage can be reached from other nodes, too
	ForgetVolume NodeGone = "forget"   // give the volume up: it was lost with its node
)

// Writer says who writes the PV.
type Writer string

// The values of the key write-pv.
const (
	ContainerWrites  Writer = "container"
	DispatcherWrites Writer = "dispatcher"
)

// Supports reports whether the image supports a verb.
func (c Config) Supports(v contract.Verb) bool { return slices.Contains(c.Verbs, v) }

// BatchOf returns how many requests of a verb one Job may serve.
func (c Config) BatchOf(verb contract.Verb) int {
	if verb == contract.Provision {
		return min(c.BatchSize, contract.MaxBatchOf(verb))
	}
	return min(c.LaterBatch, contract.MaxBatchOf(verb))
}

// AtOnceOf returns how many of so many requests flex may run at a time in one pod, 0 if the program
// of the container serves all of them itself.
func (c Config) AtOnceOf(requests int) int {
	if !c.Each {
		return 0
	}
	return min(requests, ScriptsAtOnce, c.MaxParallel)
}
