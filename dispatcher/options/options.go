package options

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Names of the shipped manifests. The dispatcher has a namespace of its own: whoever creates pods
// where its ServiceAccount is becomes the dispatcher, and configs make pods.
const (
	SystemNamespace = "flex-system"
	ConfigNamespace = "flex-provisioner"
	// Name is that of the Deployment, of its container's image and of the lease that all replicas
	// share.
	Name = "flex-dispatcher"
	// ShellImage is the image for scripts, without registry and tag.
	ShellImage = "flex-shell"
)

// Serving says which claims a dispatcher serves, and what the pods of their Jobs may do.
type Serving struct {
	// Provisioner is the name that StorageClasses write.
	Provisioner string
	// Namespace is where configs are of classes that name no other, ConfigNamespaces are the
	// further ones.
	Namespace        string
	ConfigNamespaces []string
	// Allow are the permissions of pods beyond Pod Security "restricted", as jobs.Allowances reads
	// them.
	Allow []string
	// KubeAPI is the API server's URL as images see it, empty for the one that the dispatcher uses.
	KubeAPI string
	// ScriptImage is the image of configs that have a script and name no image.
	ScriptImage string
	// AheadOfBinder lets claims be served before the PV controller has asked for their volumes.
	AheadOfBinder bool
}

// AddFlags adds the flags, with their defaults.
func (s *Serving) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&s.Namespace, "namespace", ConfigNamespace, "namespace of configs and their Jobs")
	f.StringSliceVar(&s.ConfigNamespaces, "config-namespaces", nil, "additional namespaces of configs; a class names its namespace by the parameter "+contract.ParamConfigNamespace)
	f.StringVar(&s.Provisioner, "provisioner-name", contract.ProvisionerName, "provisioner name in StorageClasses")
	s.AddAllow(f)
	f.StringVar(&s.KubeAPI, "kube-api", "", "URL of the API server for images; default: the URL that the dispatcher uses")
	s.AddScriptImage(f)
	f.BoolVar(&s.AheadOfBinder, "ahead-of-binder", true, "provision a claim before kube-controller-manager has annotated it, if no PersistentVolume exists for it; set to false if kube-controller-manager has --enable-dynamic-provisioning=false")
}

// AddScriptImage adds the flag --script-image alone.
func (s *Serving) AddScriptImage(f *pflag.FlagSet) {
	f.StringVar(&s.ScriptImage, "script-image", "", "image of configs that have the key script and name no image, with bash and flex; without it they are faulty")
}

// Dispatcher returns what configs are parsed for.
func (s *Serving) Dispatcher() config.Dispatcher {
	return config.Dispatcher{Provisioner: s.Provisioner, ScriptImage: s.ScriptImage}
}

// AddAllow adds the flag --allow alone, for the commands that judge configs as the dispatcher does.
func (s *Serving) AddAllow(f *pflag.FlagSet) {
	f.StringArrayVar(&s.Allow, "allow", nil, "permission for pods beyond Pod Security restricted: NAMESPACE/host-path=/PATH, NAMESPACE/run-as-user=UID, NAMESPACE/capability=NAME or NAMESPACE/host-network=true; may be repeated")
}

// Election is where the replicas of a dispatcher choose their leader.
type Election struct {
	// Namespace is that of the lease, empty for the Deployment's own.
	Namespace string
	// Without is set if there is no lease.
	Without bool
}

// Of reads the flags of a dispatcher's Deployment. Its other flags are skipped.
func Of(d *appsv1.Deployment) (s Serving, err error) {
	return s, read(d, s.AddFlags)
}

// ElectionOf reads how the replicas of a dispatcher's Deployment choose their leader.
func ElectionOf(d *appsv1.Deployment) (e Election, err error) {
	elects := true
	err = read(d, func(f *pflag.FlagSet) {
		f.BoolVar(&elects, FlagElect, true, "")
		f.StringVar(&e.Namespace, FlagElectNamespace, "", "")
	})
	e.Without = !elects
	return e, err
}

// Flags of the leader election, which are those of Kubernetes' own components.
const (
	FlagElect          = "leader-elect"
	FlagElectNamespace = "leader-elect-resource-namespace"
)

// read reads some flags of a dispatcher's Deployment.
func read(d *appsv1.Deployment, add func(*pflag.FlagSet)) error {
	f := pflag.NewFlagSet(Name, pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.SetOutput(io.Discard)
	add(f)
	c := ContainerOf(d)
	if err := f.Parse(slices.Concat(c.Command, c.Args)); err != nil {
		return fmt.Errorf("the flags of the container %s of the Deployment %s/%s: %w", c.Name, d.Namespace, d.Name, err)
	}
	return nil
}

// ContainerOf returns the dispatcher's container in its Deployment: the one of its name, or else the
// first. The flags of a sidecar that was added to the pod are not the dispatcher's.
func ContainerOf(d *appsv1.Deployment) corev1.Container {
	all := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == Name })
	if len(all) == 0 {
		return corev1.Container{}
	}
	return all[max(i, 0)]
}

// Namespaces returns where configs are read and their Jobs run. The first is that of --namespace.
func (s *Serving) Namespaces() []string {
	out := []string{s.Namespace}
	for _, ns := range s.ConfigNamespaces {
		if !slices.Contains(out, ns) {
			out = append(out, ns)
		}
	}
	return out
}

// Allowances reads what --allow says.
func (s *Serving) Allowances() (jobs.Allowances, error) {
	out := jobs.Allowances{}
	for _, text := range s.Allow {
		if err := out.Add(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}
