package rbac

import (
	"slices"
	"strings"
)

// Exception is a permission that a run need not use.
type Exception struct {
	Account, Verb, Resource string // the account's name without its namespace, or Any
	Reason                  string
}

const (
	streamed  = "client-go takes a first list by a watch where the API server can, which is so from Kubernetes 1.34 on; older ones are asked for it"
	anHour    = "a revision is deleted an hour after its last use: TestUnusedRevisionIsMarkedAndCollectedAnHourLater"
	rerun     = "asked after a creation that failed: the answer to an earlier one was lost"
	noImage   = "an image of a vendor, which the tests do not have"
	elsewhere = "the storage of a recipe, which make e2e does not have: PART=recipes of hack/e2e-long.sh"
	anOption  = "the component audit, which make e2e does not install: it runs the audit as an administrator. TestTheManifestGivesWhatAnAuditReads compares the two"
	byPolicy  = "no request: provisioner-pv-policy.yaml asks whether the account may, TestBatchWritesNoPVOfAnotherClass"
)

// Any is every account.
const Any = "*"

// Unused are the permissions that a run of the end-to-end tests need not use.
var Unused = append(ofRecipes(), []Exception{
	{"flex-dispatcher", "list", "persistentvolumeclaims", streamed},
	{"flex-dispatcher", "list", "storageclasses.storage.k8s.io", streamed},
	{"flex-dispatcher", "list", "volumeattachments.storage.k8s.io", streamed},
	{"flex-dispatcher", "list", "configmaps", streamed},
	{"flex-dispatcher", "list", "serviceaccounts", streamed},
	{"flex-dispatcher", "list", "controllerrevisions.apps", streamed},
	{"flex-dispatcher", "delete", "controllerrevisions.apps", anHour},
	{"directory-provisioner", "get", "persistentvolumes", rerun},
	{"file-server-provisioner", "get", "persistentvolumes", rerun},
	{Any, "batch", "classes.flex-provisioner.io", byPolicy},
	{"nfs-provisioner", "get", "persistentvolumes", rerun},
	{"flex-dispatcher-audit", "list", "persistentvolumeclaims", anOption},
	{"flex-dispatcher-audit", "list", "persistentvolumes", anOption},
	{"flex-dispatcher-audit", "list", "pods", anOption},
	{"flex-dispatcher-audit", "list", "secrets", anOption},
	{"flex-dispatcher-audit", "list", "storageclasses.storage.k8s.io", anOption},
	{"flex-dispatcher-audit", "list", "jobs.batch", anOption},
	{"flex-dispatcher-audit", "get", "namespaces", anOption},
	{"flex-dispatcher-audit", "get", "leases.coordination.k8s.io", anOption},
	{"acme-provisioner", "create", "persistentvolumes", noImage},
	{"acme-provisioner", "get", "persistentvolumes", noImage},
}...)

// ofRecipes returns the permissions of the accounts of docs/recipes.
func ofRecipes() (all []Exception) {
	pvs := [][2]string{{"create", "persistentvolumes"}, {"get", "persistentvolumes"}}
	secrets := [][2]string{{"create", "secrets"}, {"delete", "secrets"}}
	for account, more := range map[string][][2]string{
		"http-provisioner": nil, "zfs-provisioner": nil, "iscsi-target-provisioner": secrets, "lvm-provisioner": secrets,
		"ceph-rbd-provisioner": {{"use", "secrets.flex-provisioner.io"}},
	} {
		for _, p := range slices.Concat(pvs, more) {
			all = append(all, Exception{account, p[0], p[1], elsewhere})
		}
	}
	return all
}

// reason returns why a run need not use a rule, or "".
func (r rule) reason() string {
	for _, e := range Unused {
		if e.names(r) {
			return e.Reason
		}
	}
	return ""
}

func (e Exception) names(r rule) bool {
	named := e.Account == Any || strings.HasSuffix(r.account, "/"+e.Account)
	return named && r.verb == e.Verb && r.resource == e.Resource
}

// Refusal is what a test provokes: the stand-in of an account is refused in namespaces of the test.
type Refusal struct {
	Test      string
	Account   string // its name
	Namespace string // the beginning of the namespaces' names
	Reason    string
}

// Provoked are the refusals that the end-to-end tests provoke. Every other test that wants a
// refusal has an account of its own, or impersonates one, which the audit log notes as a request of
// the administrator.
var Provoked = []Refusal{
	{"TestConfigNamespaceThatGoesStopsOnlyItsOwnClasses", "flex-dispatcher", "e2e-team-", "the RoleBinding there is deleted"},
}

// provokedBy returns the test that provoked the refusal of a request, or "".
func (r Request) provokedBy() string {
	for _, p := range Provoked {
		if r.StandIn && strings.HasSuffix(r.Account, "/"+p.Account) && strings.HasPrefix(r.Namespace, p.Namespace) {
			return p.Test
		}
	}
	return ""
}
