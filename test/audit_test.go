package test

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// auditPolicy is what is read of the audit policy of the lab's API server.
type auditPolicy struct {
	OmitStages []string `json:"omitStages"`
	Rules      []struct {
		Level           string           `json:"level"`
		UserGroups      []string         `json:"userGroups"`
		Resources       []map[string]any `json:"resources"`
		NonResourceURLs []string         `json:"nonResourceURLs"`
		OmitStages      []string         `json:"omitStages"`
	} `json:"rules"`
}

// The roles are compared with the requests in the audit log: it has every request of every account
// for a resource, when it is answered.
func TestAuditLogHasEveryRequestOfAnAccount(t *testing.T) {
	var policy auditPolicy
	if err := yaml.UnmarshalStrict([]byte(content(t, "test/cluster/audit-policy.yaml")), &struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		*auditPolicy
	}{auditPolicy: &policy}); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(policy.OmitStages, "ResponseComplete") {
		t.Error("answers are left out")
	}
	for _, rule := range policy.Rules {
		isOfNodes, isOfNoResource := slices.Equal(rule.UserGroups, []string{"system:nodes"}), len(rule.NonResourceURLs) > 0
		if rule.Level == "None" && !isOfNodes && !isOfNoResource || len(rule.OmitStages) > 0 {
			t.Errorf("a rule leaves out requests of accounts: %+v", rule)
		}
	}
	last := policy.Rules[len(policy.Rules)-1]
	if last.Level != "Metadata" || len(last.UserGroups)+len(last.Resources)+len(last.NonResourceURLs) > 0 {
		t.Errorf("the last rule is %+v, not that all else is recorded", last)
	}
}
