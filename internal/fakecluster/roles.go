package fakecluster

import (
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/deploy"
)

// granted are the verbs of the dispatcher's shipped roles, by resource. It leaves out in which
// namespaces they hold, which Forbidden stands for, and names of resources. Without it a test
// would pass although the dispatcher used a verb that its role does not have.
var granted = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{"selfsubjectaccessreviews": {"create"}} // every account may
	for document := range strings.SplitSeq(deploy.DispatcherRoles, "\n---\n") {
		var role rbacv1.ClusterRole // a Role has the same rules
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			panic(err) // the manifest is the project's own
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				out[resource] = append(out[resource], rule.Verbs...)
			}
		}
	}
	return out
})

// isGranted reports whether a client may do something: people and controllers may do all.
func isGranted(by string, a clienttesting.Action) bool {
	resource := a.GetResource().Resource
	if sub := a.GetSubresource(); sub != "" {
		resource += "/" + sub
	}
	return by != DispatcherName || slices.Contains(granted()[resource], a.GetVerb())
}
