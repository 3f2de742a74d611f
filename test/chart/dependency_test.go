package chart

import (
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// renderAsDependency renders a chart of another, which depends on ours by a condition.
func renderAsDependency(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	ours, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	parent := &chartv2.Chart{Metadata: &chartv2.Metadata{
		APIVersion: "v2", Name: "platform", Version: "1.0.0",
		Dependencies: []*chartv2.Dependency{{
			Name: ours.Name(), Version: ours.Metadata.Version, Condition: ours.Name() + ".enabled",
		}},
	}}
	parent.AddDependency(ours)
	given := object{}
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		t.Fatalf("values of the test: %v", err)
	}
	if err := chartutil.ProcessDependencies(parent, given); err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "platform", Namespace: namespace, IsInstall: true}
	all, err := util.ToRenderValues(parent, given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(parent, all)
}

// A closed schema once refused the condition, which Helm leaves among the values of the chart.
func TestTheChartIsADependencyOfAnother(t *testing.T) {
	alone, err := filesOf(t, namespace, "replicas: 3")
	if err != nil {
		t.Fatal(err)
	}
	for values, installed := range map[string]bool{
		"{flex-provisioner: {replicas: 3}}":                                                       true,
		"{flex-provisioner: {replicas: 3, enabled: true}}":                                        true,
		"{flex-provisioner: {replicas: 3, global: {a: b}}, global: {imageRegistry: x, other: y}}": true,
		"{flex-provisioner: {replicas: 3, enabled: false}}":                                       false,
	} {
		files, err := renderAsDependency(t, values)
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		if got := len(files) > 0; got != installed {
			t.Errorf("%s: %d files", values, len(files))
		}
		for name, text := range files {
			below := strings.TrimPrefix(name, "platform/charts/")
			if want := alone[below]; text != want {
				t.Errorf("%s: %s differs from what the chart alone has", values, name)
			}
		}
	}
	for values, want := range map[string]string{
		"{flex-provisioner: {enabled: 'yes'}}": "want boolean",
		"{flex-provisioner: {enable: true}}":   "additional properties 'enable' not allowed",
	} {
		if _, err := renderAsDependency(t, values); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", values, err)
		}
	}
}
