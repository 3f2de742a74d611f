package chart

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube/fake"
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// chartOf returns the chart of a release, which names the image by its digest (hack/release/release.sh).
func chartOf(t *testing.T, digest string) *chartv2.Chart {
	t.Helper()
	c, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	c.Values["image"].(object)["digest"] = digest
	return c
}

var upgradeCommand = regexp.MustCompile(`helm upgrade flex CHART --namespace flex-system (.*)`)

// With the flag that keeps all values Helm also kept the image of the earlier release: the new roles
// and policies were applied, the dispatcher stayed, and nothing said so.
func TestTheUpgradeOfThePageTakesTheImageOfTheReleaseAndKeepsTheValues(t *testing.T) {
	command := upgradeCommand.FindStringSubmatch(strings.Join(file(t, "docs/upgrade.md"), "\n---\n"))
	if command == nil {
		t.Fatal("docs/upgrade.md has no helm upgrade")
	}
	digests := []string{"sha256:" + strings.Repeat("1", 64), "sha256:" + strings.Repeat("2", 64)}
	memory := driver.NewMemory()
	memory.SetNamespace(namespace)
	cfg := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	cfg.Releases, cfg.KubeClient, cfg.Capabilities = storage.Init(memory), &fake.PrintingKubeClient{Out: io.Discard}, common.DefaultCapabilities.Copy()
	cfg.Capabilities.KubeVersion = common.KubeVersion{Version: "v1.35.0"}

	install := action.NewInstall(cfg)
	install.ReleaseName, install.Namespace = "flex", namespace
	if _, err := install.Run(chartOf(t, digests[0]), object{"replicas": 3, "configNamespaces": object{"team-a": object{}}}); err != nil {
		t.Fatal(err)
	}
	upgrade := action.NewUpgrade(cfg)
	upgrade.Namespace = namespace
	for flag := range strings.FieldsSeq(command[1]) {
		switch flag {
		case "--reuse-values":
			upgrade.ReuseValues = true
		case "--reset-then-reuse-values":
			upgrade.ResetThenReuseValues = true
		default:
			t.Fatalf("the test does not know the flag %s", flag)
		}
	}
	after, err := upgrade.Run("flex", chartOf(t, digests[1]), object{})
	if err != nil {
		t.Fatal(err)
	}
	accessor, err := release.NewAccessor(after)
	if err != nil {
		t.Fatal(err)
	}
	objects := decode(t, strings.Split(accessor.Manifest(), "\n---\n"))
	spec := objects["Deployment flex-system/flex-dispatcher"]["spec"].(object)
	container := spec["template"].(object)["spec"].(object)["containers"].([]any)[0].(object)
	if container["image"] != "localhost/flex-dispatcher@"+digests[1] {
		t.Errorf("the dispatcher is %s", container["image"])
	}
	if fmt.Sprint(spec["replicas"]) != "3" || objects["Namespace team-a"] == nil {
		t.Errorf("the values are lost: %v replicas, team-a is %v", spec["replicas"], objects["Namespace team-a"])
	}
}
