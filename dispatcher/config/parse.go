package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Keys of a provisioner ConfigMap that the dispatcher itself reads.
const (
	keyPluginName     = "plugin-name"
	keyImage          = "image"
	keyScript         = "script"
	keyPullPolicy     = "image-pull-policy"
	keyVerbs          = "verbs"
	keyServiceAccount = "service-account-name"
	keyNodeSelector   = "node-selector"
	keyRunOn          = "run-on"
	keyNodeGone       = "node-gone"
	keyEnvSecret      = "env-from-secret"
	keyFilesSecret    = "files-from-secret" //nolint:gosec // the name of a key
	keyPodTemplate    = "pod-template"
	keyTimeout        = "timeout"
	keyMaxAttempts    = "max-attempts"
	keyMaxParallel    = "max-parallel"
	keyDataSources    = "data-sources"
	keyWritePV        = "write-pv"
	keyBatchSize      = "batch-size"
	keyRequestKeys    = "request-keys"
	keyAttributes     = "volume-attributes-classes"
	keyClasses        = "classes"            // Lists reads it
	keyNamespaces     = "namespaces"         // Admits reads it
	keyKeepDeleted    = "keep-deleted"       // TrashOf reads it
	keyKeepLimit      = "keep-deleted-limit" // TrashOf reads it
)

// Dispatcher is what a source is parsed for.
type Dispatcher struct {
	// Provisioner is the name under which the dispatcher runs.
	Provisioner string
	// ScriptImage is the image of a config that has a script and names no image. It is no part of
	// the source, so that a volume whose image a release has replaced is deleted by that of the next.
	// Empty: such a config has a fault.
	ScriptImage string
}

// Parse parses a source. With any fault the Config must not be used.
func Parse(src Source, of Dispatcher) (Config, field.ErrorList) {
	p := parser{src: src, of: of, cfg: Config{Source: src}}
	if p.sizes(); len(p.faults) > 0 {
		return p.cfg, p.faults // what is too large is not looked into
	}
	p.properties() // first: a key that is misspelt is why another is missing
	p.pluginName()
	p.script()
	p.image()
	p.verbs()
	p.serviceAccount()
	p.nodeSelector()
	p.runOn()
	p.nodeGone()
	p.secrets()
	p.limits()
	p.podTemplate()
	p.dataSources()
	p.attributesClasses()
	p.requestKeys()
	p.trash()
	return p.cfg, few(p.faults)
}

// Keys returns the keys that the dispatcher reads. Every other key is a property.
func Keys() []string {
	return []string{
		keyPluginName, keyImage, keyScript, keyPullPolicy, keyVerbs, keyServiceAccount, keyNodeSelector, keyRunOn, keyNodeGone,
		keyEnvSecret, keyFilesSecret, keyPodTemplate, keyTimeout, keyMaxAttempts, keyMaxParallel,
		keyDataSources, keyWritePV, keyBatchSize, keyRequestKeys, keyAttributes, keyClasses, keyNamespaces,
		keyKeepDeleted, keyKeepLimit,
	}
}

type parser struct {
	src    Source
	of     Dispatcher
	cfg    Config
	faults field.ErrorList
}

func at(key string) *field.Path { return field.NewPath("data").Key(key) }

// get returns a key's value without surrounding blanks, since YAML blocks end in a newline.
func (p *parser) get(key string) string { return strings.TrimSpace(p.src.Data[key]) }

func (p *parser) invalid(key, value, format string, args ...any) {
	p.faults = append(p.faults, field.Invalid(at(key), value, fmt.Sprintf(format, args...)))
}

func (p *parser) pluginName() {
	if name := p.get(keyPluginName); name != "" && name != p.of.Provisioner && name != contract.OldPluginName {
		p.invalid(keyPluginName, name, "this dispatcher supports %s (and %s in older configs)", p.of.Provisioner, contract.OldPluginName)
	}
}

func (p *parser) image() {
	p.cfg.Image = p.imageOf()
	if p.cfg.Image == "" && p.cfg.Script == "" {
		p.faults = append(p.faults, field.Required(at(keyImage), "the provisioning container's image, unless the key script has its program"))
	}
	policies := []string{"", string(corev1.PullAlways), string(corev1.PullIfNotPresent), string(corev1.PullNever)}
	policy := p.get(keyPullPolicy)
	if !slices.Contains(policies, policy) {
		p.faults = append(p.faults, field.NotSupported(at(keyPullPolicy), policy, policies[1:]))
	}
	p.cfg.PullPolicy = corev1.PullPolicy(policy)
}

// verbs parses the verbs that the image supports.
func (p *parser) verbs() {
	p.cfg.Verbs = []contract.Verb{contract.Provision}
	if text := p.get(keyVerbs); text != "" {
		p.cfg.Verbs = nil
		for word := range strings.SplitSeq(text, ",") {
			verb := contract.Verb(strings.TrimSpace(word))
			if !verb.Known() {
				p.faults = append(p.faults, field.NotSupported(at(keyVerbs), verb, contract.Verbs()))
				continue
			}
			p.cfg.Verbs = append(p.cfg.Verbs, verb)
		}
	}
	if !p.cfg.Supports(contract.Provision) {
		p.invalid(keyVerbs, p.get(keyVerbs), "must include provision")
	}
	// An image that ignores its argument would provision again when asked to delete, and exit 0.
	if p.src.Reclaim == string(corev1.PersistentVolumeReclaimDelete) && !p.cfg.Supports(contract.Delete) {
		p.invalid(keyVerbs, p.get(keyVerbs), "the class %s has the reclaimPolicy Delete: "+
			"the image must support the verb delete and list it here, or the class must have the reclaimPolicy Retain", p.src.Class)
	}
}

func (p *parser) serviceAccount() {
	p.cfg.ServiceAccount, p.cfg.Writer = p.get(keyServiceAccount), ContainerWrites
	switch text := Writer(p.get(keyWritePV)); text {
	case "":
	case ContainerWrites, DispatcherWrites:
		p.cfg.Writer = text
	default:
		p.faults = append(p.faults, field.NotSupported(at(keyWritePV), text, []Writer{ContainerWrites, DispatcherWrites}))
	}
	if p.cfg.ServiceAccount == "" && p.cfg.Writer == ContainerWrites {
		p.faults = append(p.faults, field.Required(at(keyServiceAccount),
			"the ServiceAccount with which the container creates the PersistentVolume"))
	}
}

func (p *parser) nodeSelector() {
	text := p.get(keyNodeSelector)
	if text == "" {
		return
	}
	selector := map[string]string{}
	p.cfg.Scheduling.NodeSelector = selector
	for pair := range strings.SplitSeq(text, ",") {
		key, value, found := strings.Cut(strings.TrimSpace(pair), "=")
		if !found {
			p.invalid(keyNodeSelector, pair, "must have the form label=value, separated by commas")
			continue
		}
		if _, twice := selector[key]; twice {
			p.invalid(keyNodeSelector, pair, "the label %s is named twice", key)
		}
		selector[key] = value
		// One by one: for a map of all labels the order of the faults would change each time.
		p.faults = append(p.faults, metav1validation.ValidateLabels(map[string]string{key: value}, at(keyNodeSelector))...)
	}
}

func (p *parser) runOn() {
	p.cfg.RunOn = RunAnywhere
	switch text := RunOn(p.get(keyRunOn)); text {
	case "":
	case RunAnywhere, RunOnSelected:
		p.cfg.RunOn = text
	default:
		p.faults = append(p.faults, field.NotSupported(at(keyRunOn), text, []RunOn{RunAnywhere, RunOnSelected}))
	}
	if p.cfg.RunOn == RunOnSelected && p.src.Binding != string(storagev1.VolumeBindingWaitForFirstConsumer) {
		p.invalid(keyRunOn, string(RunOnSelected), "the class %s must have the volumeBindingMode WaitForFirstConsumer, "+
			"since otherwise no node is selected", p.src.Class)
	}
}

func (p *parser) nodeGone() {
	p.cfg.NodeGone = WaitForNode
	switch text := NodeGone(p.get(keyNodeGone)); text {
	case "":
	case WaitForNode, AnyNode, ForgetVolume:
		p.cfg.NodeGone = text
	default:
		p.faults = append(p.faults, field.NotSupported(at(keyNodeGone), text, []NodeGone{WaitForNode, AnyNode, ForgetVolume}))
	}
}

func (p *parser) secrets() {
	p.cfg.EnvSecret, p.cfg.FilesSecret = p.secret(keyEnvSecret), p.secret(keyFilesSecret)
}

func (p *parser) secret(key string) string {
	name := p.get(key)
	if name == "" {
		return ""
	}
	for _, fault := range validation.IsDNS1123Subdomain(name) {
		p.invalid(key, name, "%s", fault)
	}
	return name
}

func (p *parser) limits() {
	p.cfg.Timeout = defaultTimeout
	if text := p.get(keyTimeout); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			p.invalid(keyTimeout, text, "must be a duration of at least one second, such as 10m")
		}
		p.cfg.Timeout = d
	}
	p.cfg.MaxAttempts = p.number(keyMaxAttempts, 0, 0)
	p.cfg.MaxParallel = p.number(keyMaxParallel, defaultParallel, 1)
	p.batchSize()
}

func (p *parser) batchSize() {
	p.cfg.BatchSize = p.number(keyBatchSize, 1, 1)
	p.cfg.LaterBatch = p.cfg.BatchSize
	p.cfg.Each = p.cfg.Script != "" && (p.get(keyImageOfScript) == "" || p.cfg.BatchSize > 1)
	// The right to create PVs of a batch lets a stolen token bind one to another claim of its class,
	// so a config has to ask for batches of provisions. The other verbs need no further right.
	unasked := p.cfg.Each && p.get(keyBatchSize) == "" && p.cfg.Writer == ContainerWrites
	if unasked && !needsRunOfItsOwn(p.cfg.Script) {
		p.cfg.LaterBatch = scriptBatch
	}
	switch text := p.get(keyBatchSize); {
	case p.cfg.BatchSize > contract.MaxBatch:
		p.invalid(keyBatchSize, text, "must be at most %d: a termination message has no room for more results", contract.MaxBatch)
	case p.cfg.BatchSize > 1 && p.cfg.Writer == DispatcherWrites:
		p.invalid(keyBatchSize, text, "must be 1 with %s: %s, since the termination message contains one volume source", keyWritePV, DispatcherWrites)
	}
}

// dataSources parses the sources that the image can clone. They must be declared: an image that
// ignores the request's source would make an empty volume where a clone was asked for.
func (p *parser) dataSources() {
	switch text := p.get(keyDataSources); text {
	case "":
	case contract.SourceClaim:
		p.cfg.Clones = true
	default:
		p.faults = append(p.faults, field.NotSupported(at(keyDataSources), text, []string{contract.SourceClaim}))
	}
}

// attributesClasses parses whether the image's PVs can have a volumeAttributesClassName. Kubernetes
// accepts one only on PVs with a csi source, so that any other image would make the volume, fail to
// write its PV, and be run again for ever.
func (p *parser) attributesClasses() {
	switch text := p.get(keyAttributes); text {
	case "", "false":
	case "true":
		p.cfg.AttributesClasses = true
	default:
		p.faults = append(p.faults, field.NotSupported(at(keyAttributes), text, []string{"true", "false"}))
	}
}

func (p *parser) number(key string, value, least int) int {
	text := p.get(key)
	if text == "" {
		return value
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		p.invalid(key, text, "must be a whole number, %d or more", least)
	}
	return n
}
