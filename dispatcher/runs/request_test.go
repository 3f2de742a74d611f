package runs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestRecordedReadsBackWhatWasBuilt(t *testing.T) {
	p := fixture.Provision(fixture.Config(t, "Delete", nil), fixture.Claim())
	request, pv, err := runs.ReadRequest(fixture.Build(t, p).Spec.Template.Annotations, fixture.UID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Request, request); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(p.PV, pv); diff != "" {
		t.Errorf("the PV (-want +got):\n%s", diff)
	}
	ours := `{"uid":"` + fixture.UID + `"}`
	for name, broken := range map[string]map[string]string{
		"nothing":                          {},
		"no PV":                            requestFile("v1", "delete", ours, ""),
		"another claim's":                  requestFile("v1", "delete", `{"uid":"other"}`, "{}"),
		"two requests and one PV":          requestFile("v1", "delete", ours+`,{"uid":"other"}`, "{}"),
		"two requests in a list of one PV": requestFile("v1", "delete", ours+`,{"uid":"other"}`, `{"kind":"List","items":[{}]}`),
		"a list without a PV":              requestFile("v1", "delete", ours+`,{"uid":"other"}`, `{"kind":"List","items":[null,{}]}`),
		"another version":                  requestFile("v2", "delete", ours, "{}"),
		"another verb":                     requestFile("v1", "x", ours, "{}"),
	} {
		if _, _, err := runs.ReadRequest(broken, fixture.UID); err == nil {
			t.Errorf("%s was read without an error", name)
		}
	}
}

// requestFile returns the annotations of a pod with these requests.
func requestFile(version, verb, requests, pv string) map[string]string {
	return map[string]string{
		jobs.AnnRequest: `{"version":"flex-provisioner.io/` + version + `","verb":"` + verb + `","requests":[` + requests + `]}`,
		jobs.AnnPV:      pv,
	}
}
