package input

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// schedulerHints returns the hints for Cinder's scheduler: a JSON object of the class, and what the
// claim says in the annotations that the class allows for it.
func schedulerHints(r contract.Request, c class) (map[string]any, error) {
	hints := map[string]any{}
	if c.hints != "" {
		if err := json.Unmarshal([]byte(c.hints), &hints); err != nil {
			return nil, fault(contract.ExitConfig, fmt.Errorf("property scheduler-hints: must be a JSON object: %w", err))
		}
	}
	for _, pair := range splitList(c.hintAnnotations) {
		if err := addHint(hints, pair, r.Annotations); err != nil {
			return nil, err
		}
	}
	if len(hints) == 0 {
		return nil, nil
	}
	return hints, nil
}

// addHint adds one hint of the claim, by a pair HINT=ANNOTATION.
func addHint(hints map[string]any, pair string, annotations map[string]string) error {
	hint, annotation, ok := strings.Cut(pair, "=")
	if !ok || hint == "" || annotation == "" || hints[hint] != nil {
		return fault(contract.ExitConfig,
			fmt.Errorf("property hint-annotations: %q must have the form HINT=ANNOTATION, with a hint that the class does not set", pair))
	}
	value, err := claimsHint(hint, annotations[annotation])
	if err != nil {
		return fault(contract.ExitBadRequest, fmt.Errorf("annotation %s: %w", annotation, err))
	}
	if value != nil {
		hints[hint] = value
	}
	return nil
}

// claimsHint returns the value of a hint that a claim's user wrote, or nil for none. It is text or,
// for the hints that name volumes, a list of IDs, and never JSON: a user chooses no more than what
// the hint is for.
func claimsHint(hint, text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	if hint != "same_host" && hint != "different_host" {
		return text, nil
	}
	ids := splitList(text)
	for _, id := range ids {
		if !uuidForm.MatchString(id) {
			return nil, fmt.Errorf("%q must be the ID of a volume", id)
		}
	}
	return ids, nil
}
