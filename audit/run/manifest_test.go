package run_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// The account of deploy/audit may do everything outside of config namespaces that an audit asks for,
// and nothing else. The namespace kube-system is read when the audit connects.
func TestTheManifestGivesWhatAnAuditReads(t *testing.T) {
	t.Parallel()
	asked := append(asksEverywhere(t, run.Storages{}), "get namespaces/kube-system")
	slices.Sort(asked)
	if given := rulesOf(t, "../../deploy/audit/audit.yaml"); !slices.Equal(asked, given) {
		t.Errorf("the audit asks for\n%q, and its manifest gives\n%q", asked, given)
	}
}

// asksEverywhere returns what an audit asks for outside of config namespaces, with a class whose
// volumes are on nodes.
func asksEverywhere(t *testing.T, storages run.Storages) (asked []string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	delayed := class("gold")
	delayed.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	onNodes := configOf("gold", map[string]string{"image": "i", "verbs": "provision,delete,list", "run-on": "selected-node", "write-pv": "dispatcher"})
	client, objects := fake.NewClientset(delayed, onNodes), metadatafake.NewSimpleMetadataClient(scheme)
	auditor := &run.Auditor{
		Client: client, Objects: objects, Clock: clock.RealClock{}, Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespace: "flex-provisioner",
		Lease: types.NamespacedName{Namespace: "flex-system", Name: "flex-dispatcher"},
	}
	if l, err := auditor.Look(t.Context(), storages); err != nil || len(l.Faults)+len(l.Notes) > 0 {
		t.Fatal(err, l.Faults, l.Notes)
	}
	for _, action := range slices.Concat(client.Actions(), objects.Actions()) {
		request := action.GetVerb() + " " + action.GetResource().Resource
		if get, is := action.(clienttesting.GetAction); is {
			request += "/" + get.GetName()
		}
		if action.GetNamespace() != "flex-provisioner" {
			asked = append(asked, request)
		}
	}
	slices.Sort(asked)
	return slices.Compact(asked)
}

// The page has the rights that the account needs beside these to list storages, and no others.
func TestThePageGivesWhatAnAuditOfStoragesAsksFor(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		l.ends(0, contract.EncodeListEnd(0), "")
		if got, err := l.Look(l.t.Context(), run.Storages{All: true}); err != nil || len(got.Faults) > 0 {
			l.t.Fatal(err, got.Faults)
		}
		l.started = nil
		l.mustFail("has not ended") // it looks for events that say why
		page, err := os.ReadFile("../../docs/audit.md")
		if err != nil {
			l.t.Fatal(err)
		}
		_, rights, _ := strings.Cut(string(page), "```yaml\napiVersion: rbac")
		rights, _, _ = strings.Cut(rights, "```")
		given := rulesIn(l.t, "apiVersion: rbac"+rights)
		everywhere := rulesOf(l.t, "../../deploy/audit/audit.yaml")
		asked := slices.DeleteFunc(asksEverywhere(l.t, run.Storages{All: true}), func(request string) bool {
			return slices.Contains(everywhere, request)
		})
		for _, action := range l.client.Actions() {
			resource := strings.TrimSuffix(action.GetResource().Resource+"/"+action.GetSubresource(), "/")
			request := action.GetVerb() + " " + resource
			if action.GetNamespace() == "flex-provisioner" && !slices.Contains(everywhere, request) {
				asked = append(asked, request)
			}
		}
		slices.Sort(asked)
		if asked = slices.Compact(asked); !slices.Equal(asked, given) {
			l.t.Errorf("the audit asks for\n%q, and the page gives\n%q", asked, given)
		}
	})
}

// rulesOf returns what the roles of a file allow, as requests.
func rulesOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return rulesIn(t, string(text))
}

func rulesIn(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					out = append(out, strings.TrimSuffix(verb+" "+resource+"/"+strings.Join(rule.ResourceNames, ","), "/"))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}
