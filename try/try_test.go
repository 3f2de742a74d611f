//go:build linux

package try_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/shell"
	"github.com/flex-provisioner/flex-provisioner/try"
	"github.com/flex-provisioner/flex-provisioner/try/box"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "flex" {
		os.Exit(shell.Main(os.Args[1:]))
	}
	box.Main()
	os.Exit(m.Run())
}

// runner returns a box of the test's own.
func runner(t *testing.T) box.Runner {
	t.Helper()
	b, err := box.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// serving are the flags of a dispatcher that serves scripts.
var serving = options.Serving{
	Provisioner: "flex-provisioner.io", Namespace: options.ConfigNamespace, ScriptImage: "localhost/flex-shell:dev",
}

// parsed returns a trial of the class of a file.
func parsed(t *testing.T, text string) *try.Trial {
	t.Helper()
	out := &try.Trial{Serving: serving, Runner: runner(t), Options: conform.Options{Size: resource.MustParse("1Gi"), Kills: 3}}
	for document := range strings.SplitSeq(text, "\n---\n") {
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		switch o := obj.(type) {
		case *storagev1.StorageClass:
			out.Class = o
		case *corev1.ConfigMap:
			out.Configs = append(out.Configs, o)
		case *corev1.Secret:
			out.Secrets = append(out.Secrets, o)
		case *corev1.ServiceAccount:
			out.Accounts = append(out.Accounts, o)
		}
	}
	out.Config = configOf(t, out)
	out.Shown = func(s try.Shown) {
		if s.Event != "" {
			t.Log("  event", s.Event)
		} else {
			t.Logf("  %s %s: exit %d after %s%s", s.Verb, s.Claim, s.End.Code, s.End.Took.Round(time.Millisecond), indent(s.End.Output+s.End.Message))
		}
	}
	return out
}

// configOf returns the config of a trial, which is its last ConfigMap.
func configOf(t *testing.T, of *try.Trial) config.Config {
	t.Helper()
	cfg, faults := config.Parse(config.SourceOf(of.Configs[len(of.Configs)-1], of.Class), serving.Dispatcher())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return cfg
}

func indent(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "\n      | " + strings.ReplaceAll(text, "\n", "\n      | ")
}

// do runs a trial, and returns its report.
func do(t *testing.T, trial *try.Trial) *conform.Report {
	t.Helper()
	began := time.Now()
	report, err := trial.Do(t.Context(), func(r conform.Result) { t.Logf("%s %s %s", r.Verdict, r.Promise, r.Note) })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d claims in %s", report.Claims, time.Since(began).Round(time.Millisecond))
	return report
}

// recipe returns a trial of a recipe.
func recipe(t *testing.T, name string) *try.Trial {
	t.Helper()
	text, err := os.ReadFile("../configmaps/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	trial := parsed(t, string(text))
	trial.Kills = 1
	return trial
}

func mustKeep(t *testing.T, report *conform.Report, most int) {
	t.Helper()
	if report.Broken() > 0 || report.Count(conform.Failed) > 0 || report.Count(conform.Kept) < most || len(report.Left) > 0 {
		t.Errorf("%+v", report)
	}
}

// noted makes directories of a node, and notes of whose they are.
const noted = `#!/bin/bash
set -euo pipefail
notes=$FLEX_BASE_DIR/.notes
case $1 in
  list)
    [ -d "$notes" ] || exec flex list
    exec flex list "$notes"
    ;;
  provision)
    mkdir -p "$notes"
    flex note "$notes/$FLEX_PV_NAME"
    mkdir -p "$FLEX_BASE_DIR/$FLEX_PV_NAME"
    flex pv --local "$FLEX_BASE_DIR/$FLEX_PV_NAME"
    ;;
  delete)
    flex empty "$FLEX_BASE_DIR/$FLEX_PV_NAME"
    rm -f "$notes/$FLEX_PV_NAME"
    ;;
esac
`

func TestTheListOfAClassOnNodesIsTested(t *testing.T) {
	trial := recipe(t, "node-directory")
	data := trial.Configs[len(trial.Configs)-1].Data
	data["verbs"], data["script"] = "provision,delete,list", noted
	trial.Config, trial.Only = configOf(t, trial), []string{"provision", "list", "delete"}
	mustKeep(t, do(t, trial), 3)
}

func TestARecipeKeepsItsPromises(t *testing.T) {
	mustKeep(t, do(t, recipe(t, "nfs")), 8)
}

// A script whose directories were one level deeper kept its promises here, and each claim of a cluster
// failed.
func TestADirectoryOfANodeThatClustersRefuseIsNoVolume(t *testing.T) {
	for name, pv := range map[string]struct{ patch, said string }{
		"one of a team": {`--local "$FLEX_BASE_DIR/team/$FLEX_PV_NAME"`, "must be /var/lib/flex-volumes/pvc-"},
		"a hostPath without a type": {
			`"{\"spec\":{\"hostPath\":{\"path\":\"$FLEX_BASE_DIR/$FLEX_PV_NAME\"}}}"`, "must be Directory or DirectoryOrCreate",
		},
	} {
		t.Run(name, func(t *testing.T) {
			trial := recipe(t, "node-directory")
			trial.Configs[len(trial.Configs)-1].Data["script"] = "#!/bin/bash\nset -e\nflex pv " + pv.patch + "\n"
			trial.Config, trial.Only = configOf(t, trial), []string{"provision"}
			result := do(t, trial).Promises[0]
			if result.Verdict != conform.Broken || !strings.Contains(result.Output, pv.said) || !strings.Contains(result.Output, "flex-pv-source") {
				t.Errorf("%+v", result)
			}
		})
	}
}

// What jq prints of a field that an answer lacks is no path.
func TestAPVThatKubernetesRefusesIsNoVolume(t *testing.T) {
	trial := recipe(t, "nfs")
	trial.Configs[0].Data["script"] = "#!/bin/bash\nset -e\n" +
		`flex pv '{"spec":{"nfs":{"server":"null","path":"null"}}}'` + "\n"
	trial.Config = configOf(t, trial)
	trial.Only = []string{"provision"}
	result := do(t, trial).Promises[0]
	if result.Verdict != conform.Broken || !strings.Contains(result.Output, "absolute path") {
		t.Errorf("%+v", result)
	}
}

// Each script of a pod has a TMPDIR of its own. What it writes to /tmp itself, the others find.
func TestNamesThatTwoRequestsShareAreFound(t *testing.T) {
	trial := recipe(t, "nfs")
	script, shared := trial.Configs[0].Data["script"], "place=$below/${FLEX_PV_NAME:?}"
	trial.Configs[0].Data["script"] = strings.Replace(script, shared,
		`echo "$FLEX_PV_NAME" >/tmp/name; sleep 0.5; place=$below/$(</tmp/name)`, 1)
	trial.Config = configOf(t, trial)
	trial.Only = []string{"provision", "delete", "batch"}
	report := do(t, trial)
	if result := report.Promises[len(report.Promises)-1]; result.Promise != "batch" || result.Verdict != conform.Broken {
		t.Errorf("%+v", report)
	}
}
