package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	k8syaml "sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/internal/onedocument"
	"github.com/flex-provisioner/flex-provisioner/internal/quantity"
)

// Whoever edits a ConfigMap must not stop the classes of all others. A small pod-template with
// aliases once cost hundreds of MiB, and a larger one ended the dispatcher, and after it each next
// leader (TestAnchorsAndAliasesInATemplateAreRefused).
const (
	// MaxData is the largest size of a ConfigMap's keys and values together, in bytes. Nothing
	// larger can be without a fault, if only what follows has a sensible size. So the caches keep
	// no data that are larger.
	MaxData = maxTemplate + maxScript + maxProperties
	// maxProperties is the largest size of all properties together, as JSON, in bytes. Linux starts
	// no process with a variable longer than this, and beside the PV they must fit into a pod's
	// annotations (256 KiB).
	maxProperties = 128 << 10
	// maxTemplate and maxTemplateJSON are the largest size of a pod-template as it is written, and
	// in JSON, in bytes. The pod has the properties, the request and the PV beside it, and the API
	// server stores no object of more than 1.5 MiB.
	maxTemplate     = 64 << 10
	maxTemplateJSON = 128 << 10
	// maxDepth is how deep a pod-template may be nested. No field of a pod is at 20.
	maxDepth = 50
	// maxEntries is how many containers, variables, mounts and the like a list may have.
	// apimachinery's strategic merge takes time by the square of a list, in which no other config
	// is judged.
	maxEntries = 250
	// maxValue is the largest size of any other key that the dispatcher reads, in bytes.
	maxValue = 4 << 10
	// mostFaults is how many faults of a config are reported. An event has room for no more.
	mostFaults = 50
)

// sizes reports everything that is too large.
func (p *parser) sizes() {
	if size := max(DataSize(p.src.Data), p.src.DataSize); size > MaxData {
		p.tooLarge(field.NewPath("data"), size, MaxData, "keep files and scripts in the image, or in a Secret that files-from-secret names")
		return
	}
	for _, key := range Keys() {
		if key != keyPodTemplate && key != keyScript && len(p.src.Data[key]) > maxValue {
			p.tooLarge(at(key), len(p.src.Data[key]), maxValue, "shorten it")
		}
	}
	if size := len(p.src.Data[keyPodTemplate]); size > maxTemplate {
		p.tooLarge(at(keyPodTemplate), size, maxTemplate, "keep files and scripts in the image, or mount them from a ConfigMap")
	}
	if size := len(p.src.Data[keyScript]); size > maxScript {
		p.tooLarge(at(keyScript), size, maxScript, "keep what it reads or calls in an image")
	}
	p.propertiesSize()
}

func (p *parser) tooLarge(at *field.Path, size, most int, remedy string) {
	p.faults = append(p.faults, field.Invalid(at, strconv.Itoa(size)+" bytes", fmt.Sprintf("must have at most %d bytes: %s", most, remedy)))
}

func (p *parser) propertiesSize() {
	all := map[string]string{}
	for key, value := range p.src.Data {
		if !isOurs(key) {
			all[key] = value
		}
	}
	maps.Copy(all, p.src.Parameters)
	if text, err := json.Marshal(all); err != nil || len(text) > maxProperties {
		p.faults = append(p.faults, field.TooLong(field.NewPath("data and the class's parameters"), "", maxProperties))
	}
}

// few returns the first faults, and how many there are besides.
func few(faults field.ErrorList) field.ErrorList {
	if len(faults) <= mostFaults {
		return faults
	}
	more := field.Invalid(field.NewPath("data"), len(faults), fmt.Sprintf("faults were found, and only the first %d are listed", mostFaults))
	return append(slices.Clip(faults[:mostFaults]), more)
}

// DataSize returns the size of a ConfigMap's data.
func DataSize(data map[string]string) int {
	size := 0
	for key, value := range data {
		size += len(key) + len(value)
	}
	return size
}

// DroppedSize returns the size of the data that the caches do not keep of a ConfigMap, 0 if there
// are none.
func DroppedSize(cm *corev1.ConfigMap) int {
	size, err := strconv.Atoi(cm.Annotations[AnnCut])
	if err != nil || len(cm.Data) > 0 {
		return 0
	}
	return size
}

// templateJSON returns a pod-template in JSON. The text is no longer than maxTemplate, and the JSON
// no longer than maxTemplateJSON.
func templateJSON(text string) ([]byte, error) {
	document, err := onedocument.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	if err := checkTree(document, 0); err != nil {
		return nil, err
	}
	encoded, err := k8syaml.YAMLToJSONStrict([]byte(text))
	if len(encoded) > maxTemplateJSON {
		return nil, fmt.Errorf("its size as JSON is %d bytes, and the limit is %d: it has too many characters that JSON escapes", len(encoded), maxTemplateJSON)
	}
	return encoded, err
}

// checkTree returns why a parsed text, in which nothing is expanded yet, is not to be decoded:
// decoders write out what an alias stands for at each place, and recurse.
func checkTree(n *yaml.Node, depth int) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return fmt.Errorf("line %d has the alias *%s. Anchors and aliases are not supported, since a short text could expand to a very long one. "+
			"Remedy: write out the full text", n.Line, n.Value)
	case n.Anchor != "":
		return fmt.Errorf("line %d has the anchor &%s. Anchors and aliases are not supported, since a short text could expand to a very long one. "+
			"Remedy: write out the full text at each place", n.Line, n.Anchor)
	case depth > maxDepth:
		return fmt.Errorf("line %d is nested deeper than the limit of %d levels", n.Line, maxDepth)
	case n.Kind == yaml.SequenceNode && len(n.Content) > maxEntries && n.Content[0].Kind == yaml.MappingNode:
		return fmt.Errorf("the list at line %d has %d entries, and the limit is %d", n.Line, len(n.Content), maxEntries)
	}
	for _, child := range n.Content {
		if err := checkTree(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// quantityFields are the fields of a pod under which quantities are.
var quantityFields = []string{"limits", "requests", "overhead", "sizeLimit", "divisor"}

// costlyQuantity returns a text in a decoded value that is not to be parsed as a quantity, if there
// is one. One of a few characters once stopped the classes of every namespace
// (TestAQuantityWithALongExponentIsRefused).
func costlyQuantity(value any, isQuantity bool) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, isQuantity && quantity.IsCostly(v)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if text, found := costlyQuantity(v[key], isQuantity || slices.Contains(quantityFields, key)); found {
				return text, true
			}
		}
	case []any:
		for _, item := range v {
			if text, found := costlyQuantity(item, isQuantity); found {
				return text, true
			}
		}
	}
	return "", false
}
