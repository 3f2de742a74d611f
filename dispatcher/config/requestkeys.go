package config

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// controllersDomains are the domains of annotations that Kubernetes' own controllers write on
// claims.
var controllersDomains = []string{"volume.kubernetes.io", "volume.beta.kubernetes.io", "pv.kubernetes.io"}

// requestKeys parses the names of labels and annotations whose change is a new request.
func (p *parser) requestKeys() {
	text := p.get(keyRequestKeys)
	if text == "" {
		return
	}
	for word := range strings.SplitSeq(text, ",") {
		name := strings.TrimSpace(word)
		if fault := requestKeyFault(name); fault != "" {
			p.invalid(keyRequestKeys, name, "%s", fault)
			continue
		}
		if slices.Contains(p.cfg.RequestKeys, name) {
			p.invalid(keyRequestKeys, name, "is named twice")
			continue
		}
		p.cfg.RequestKeys = append(p.cfg.RequestKeys, name)
	}
	slices.Sort(p.cfg.RequestKeys)
}

// requestKeyFault returns why a name can be no request key, or nothing. What the dispatcher and
// Kubernetes' controllers write on a claim is no request: each run would be followed by another,
// since the result of the first is written there.
func requestKeyFault(name string) string {
	// As for an object's annotations, a name may have upper case letters, also before the slash.
	if faults := validation.IsQualifiedName(strings.ToLower(name)); len(faults) > 0 {
		return "must be names of labels or annotations, separated by commas: " + strings.Join(faults, "; ")
	}
	domain, _, prefixed := strings.Cut(name, "/")
	own := strings.TrimSuffix(contract.Domain, "/")
	switch {
	case !prefixed:
		return ""
	case domain == own || strings.HasSuffix(domain, "."+own):
		return "names of " + own + " are written by the dispatcher"
	case slices.Contains(controllersDomains, domain):
		return "names of " + domain + " are written by Kubernetes' controllers"
	default:
		return ""
	}
}
