package config

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// properties collects every key that is not the dispatcher's. A key that is nearly one of the
// dispatcher's is a fault, not a property: a typo in node-selector would silently remove the
// isolation.
func (p *parser) properties() {
	p.cfg.Properties = map[string]string{}
	taken := map[string]string{}
	for _, name := range slices.Concat(contract.APIProperties(), contract.EachProperties()) {
		taken[contract.EnvName(name)] = "the reserved property " + name
	}
	for _, key := range slices.Sorted(maps.Keys(p.src.Data)) {
		if isOurs(key) && (key != keyScript || p.hasScript()) {
			continue
		}
		if own := nearKey(key); own != "" && own != key && key != propNamespace {
			p.invalid(key, key, "did you mean %s? a property must not have a name so similar to it", own)
			continue
		}
		p.property(at(key), key, p.src.Data[key], taken, "the key "+key)
	}
	params := field.NewPath("storageClass", "parameters")
	for _, key := range slices.Sorted(maps.Keys(p.src.Parameters)) {
		p.property(params.Key(key), key, p.src.Parameters[key], taken, "the class's parameter "+key)
	}
	p.warnOfProperties()
}

// warnOfProperties warns of properties that may not say what their names do.
func (p *parser) warnOfProperties() {
	if _, found := p.src.Data[propNamespace]; found {
		p.cfg.Warnings = append(p.cfg.Warnings, "namespace is a property for the image. "+
			"If it is meant to say whose claims are served, the key is namespaces")
	}
	if _, found := p.src.Data[propServiceToken]; found {
		p.cfg.Warnings = append(p.cfg.Warnings, "service-token is in the ConfigMap in plain text: "+
			"keep it in a Secret, and name the Secret in env-from-secret")
	}
}

// isOurs reports whether the dispatcher reads a key of a source itself.
func isOurs(key string) bool { return key == keyImageOfScript || slices.Contains(Keys(), key) }

func (p *parser) property(at *field.Path, name, value string, taken map[string]string, origin string) {
	env := contract.EnvName(name)
	if other, found := taken[env]; found {
		p.faults = append(p.faults, field.Invalid(at, name, "becomes the variable "+env+", which is already "+other))
		return
	}
	taken[env] = origin
	p.cfg.Properties[name] = value
}

// nearKey returns the dispatcher's key that a name differs from only in case, separators, a plural
// s or one typing error.
func nearKey(name string) string {
	folded := fold(name)
	for _, key := range Keys() {
		if isNear(foldedKeys()[key], folded) {
			return key
		}
	}
	return ""
}

// foldedKeys are the dispatcher's keys as fold returns them. Every observation of a released volume
// compares them with those of a ConfigMap.
var foldedKeys = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for _, key := range Keys() {
		out[key] = fold(key)
	}
	return out
})

// isNear reports whether two texts are equal but for one letter that is wrong, missing or
// superfluous, or two letters that are swapped.
func isNear(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	restA, restB := a[i:], b[i:]
	switch {
	case restA == restB:
		return true
	case len(restB) > len(restA):
		return restB[1:] == restA
	case len(restA) > 1 && restA[0] == restB[1] && restA[1] == restB[0]:
		return restA[2:] == restB[2:]
	default:
		return restA[1:] == restB[1:]
	}
}

func fold(key string) string {
	letters := strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. ", r) {
			return -1
		}
		return r
	}, strings.ToLower(key))
	return strings.TrimSuffix(letters, "s")
}
