package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
)

func TestThePagesListEveryKeyOfAConfig(t *testing.T) {
	keys := tableOf(t, configurationPage, "key")
	keys.mustList(t, 0, from("config.Keys", config.Keys()...))
	cfg, faults := config.Parse(config.Source{Data: map[string]string{"image": "i", "service-account-name": "s"}}, config.Dispatcher{Provisioner: contract.ProvisionerName})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	keys.mustDefault(t, 1, map[string]string{
		"verbs": fmt.Sprint(cfg.Verbs[0]), "run-on": string(cfg.RunOn), "timeout": strings.TrimSuffix(cfg.Timeout.String(), "0s"),
		"max-attempts": strconv.Itoa(cfg.MaxAttempts), "max-parallel": strconv.Itoa(cfg.MaxParallel), "write-pv": string(cfg.Writer),
		"env-from-secret": cfg.EnvSecret, "files-from-secret": cfg.FilesSecret, "image-pull-policy": string(cfg.PullPolicy),
	})
}

func TestThePagesListEveryVerb(t *testing.T) {
	verbs := map[string]string{}
	for _, v := range contract.Verbs() {
		verbs[string(v)] = "contract.Verbs"
	}
	tableOf(t, contractPage, "verb").mustList(t, 0, verbs)
}

func TestThePagesListEveryVariable(t *testing.T) {
	vars := from("the pattern of all properties", "FLEX_…")
	for _, property := range contract.APIProperties() {
		vars[contract.EnvName(property)] = "contract.APIProperties: " + property
	}
	for _, property := range contract.EachProperties() {
		vars[contract.EnvName(property)] = "contract.EachProperties: " + property
	}
	tableOf(t, contractPage, "variable").mustList(t, 0, vars)
}

// documented says which column of which table has the fields of a struct, and under which prefix.
// Of one that only the dispatcher reads, it says so.
var documented = map[string]struct {
	table    string
	column   int
	prefix   string
	internal bool
	page     string // where it is not the contract's
}{
	"contract.Requests": {table: "variable", column: 1},
	"contract.Request":  {table: "variable", column: 1},
	"contract.Source":   {table: "variable", column: 1, prefix: "source."},
	"contract.Result":   {table: "field of a result"},
	"contract.Listed":   {table: "field of a listed volume"},
	"contract.ListEnd":  {table: "field of the end of a list"},
	"runs.DescribedPV":  {table: "field of a description"},
	"jobs.Head":         {page: configurationPage, table: "field of the first line"},
	"jobs.Record":       {page: configurationPage, table: "field of a claim's line"},
	"audit.Usage":       {internal: true}, // kubectl flex status prints it
	"jobs.Outcome":      {internal: true},
	"jobs.VolumeList":   {internal: true},
	"jobs.Returns":      {internal: true},
	"config.Source":     {internal: true},
	"grants.grant":      {internal: true}, // Kubernetes documents it
	"grants.grantFrom":  {internal: true},
	"grants.grantTo":    {internal: true},
}

func TestThePagesListEveryFieldOfWhatIsExchanged(t *testing.T) {
	type place struct {
		page, table string
		column      int
	}
	fields := map[place]map[string]string{}
	structs := readSource(t).fields()
	for kind, names := range structs {
		at, known := documented[kind]
		if !known {
			t.Errorf("%s has fields in JSON: say in documented, in this file, which table lists them", kind)
		}
		if !known || at.internal {
			continue
		}
		where := place{cmp.Or(at.page, contractPage), at.table, at.column}
		if fields[where] == nil {
			fields[where] = map[string]string{}
		}
		for _, name := range names {
			fields[where][at.prefix+name] = kind
		}
	}
	for kind := range documented {
		if structs[kind] == nil {
			t.Errorf("documented, in this file, names %s, which the code has not: remove it, or correct the name", kind)
		}
	}
	for where, names := range fields {
		tableOf(t, where.page, where.table).mustList(t, where.column, names)
	}
}

func TestThePagesListEveryFile(t *testing.T) {
	files := map[string]string{}
	for key, c := range readSource(t).constants {
		if c.pkg == "contract" && strings.HasPrefix(c.value, "/") && c.value != contract.Dir {
			files[c.value] = key
		}
	}
	tableOf(t, contractPage, "file").mustList(t, 0, files)
}

var number = regexp.MustCompile(`\d+`)

func TestThePagesTellTheVerdictOfEveryExitCode(t *testing.T) {
	exits := tableOf(t, contractPage, "exit")
	other, verdicts := "", map[int]string{}
	for _, row := range exits.rows {
		said := append(spans(row[1]), "")[0]
		if strings.Contains(row[0], "any other") {
			other = said
		}
		for _, code := range number.FindAllString(row[0], -1) {
			n, err := strconv.Atoi(code)
			if err != nil {
				t.Fatal(err)
			}
			verdicts[n] = said
		}
	}
	for code := range 256 {
		said, listed := verdicts[code]
		if !listed {
			said = other
		}
		if want := string(contract.VerdictOf(code)); said != want {
			t.Errorf("%s, table | exit |: %d is `%s`; contract.VerdictOf says `%s`. Move %d to the row of that verdict", contractPage, code, said, want, code)
		}
	}
	s := readSource(t)
	codes := map[string]string{}
	for key, c := range s.constants {
		if c.kind == "Verdict" {
			codes[c.value] = key
		}
	}
	exits.mustList(t, 1, codes)
}

func TestThePagesListEveryFlag(t *testing.T) {
	for at, cmd := range map[struct{ page, table string }]*cobra.Command{
		{configurationPage, "flag"}:              command(),
		{"docs/operate.md", "flag of uninstall"}: uninstall(),
		{"docs/audit.md", "flag of audit"}:       auditCommand(),
	} {
		flags, defaults := map[string]string{}, map[string]string{}
		cmd.InitDefaultVersionFlag() // cobra adds it only when the command runs
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			flags["--"+f.Name] = "flex-dispatcher " + cmd.Name() + " --help"
			defaults["--"+f.Name] = strings.Trim(f.DefValue, "[]")
		})
		tb := tableOf(t, at.page, at.table)
		tb.mustList(t, 0, flags)
		tb.mustDefault(t, 1, defaults)
	}
}

// A name of ours that is none of these could be on an object and in no table.
func TestEveryNameOfOursSaysByItsNameWhatItIs(t *testing.T) {
	kinds := regexp.MustCompile(`^(Ann|Label|Finalizer|Param)`)
	others := []string{"contract.Domain", "contract.Version", "contract.ProvisionerName", "jobs.GateConfirm"}
	for key, c := range readSource(t).constants {
		if strings.Contains(c.value, contract.Domain) && !kinds.MatchString(c.name) && !slices.Contains(others, key) {
			t.Errorf("%s is %q: let its name begin with Ann, Label, Finalizer or Param, so that it is found for the tables", key, c.value)
		}
	}
}

func TestThePagesListEveryLabelFinalizerAndParameter(t *testing.T) {
	s := readSource(t)
	for table, prefix := range map[string]string{"label": "Label", "finalizer": "Finalizer", "parameter": "Param"} {
		tableOf(t, configurationPage, table).mustList(t, 0, s.named(prefix))
	}
}

// The annotations are in two tables, each in one of them: those that an image sees, and the others.
func TestThePagesListEveryAnnotation(t *testing.T) {
	names := readSource(t).named("Ann")
	image := tableOf(t, contractPage, "annotation of the PV")
	rest := tableOf(t, configurationPage, "annotation")
	seen := map[string]string{}
	for name := range image.names(0) {
		if place := names[name]; place != "" {
			seen[name] = place
		}
	}
	image.mustList(t, 0, seen)
	others := maps.Clone(names)
	maps.DeleteFunc(others, func(name, _ string) bool { return seen[name] != "" })
	rest.mustList(t, 0, others)
}

func TestThePagesListEveryReasonOfAnEvent(t *testing.T) {
	tableOf(t, configurationPage, "reason").mustList(t, 0, readSource(t).reasons())
}

// registry notes what is registered with it.
type registry struct {
	metrics.KubeRegistry
	labels map[string]string // by series
}

var desc = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

func (r registry) MustRegister(all ...metrics.Registerable) {
	r.KubeRegistry.MustRegister(all...)
	for _, m := range all {
		note(r, m.Describe)
	}
}

func (r registry) CustomMustRegister(all ...metrics.StableCollector) {
	r.KubeRegistry.CustomMustRegister(all...)
	for _, m := range all {
		note(r, m.Describe)
	}
}

func note[D fmt.Stringer](r registry, describe func(chan<- D)) {
	out := make(chan D, 100)
	describe(out)
	close(out)
	for d := range out {
		m := desc.FindStringSubmatch(d.String())
		r.labels[m[1]] = m[2]
	}
}

func TestThePagesListEverySeriesWithItsLabels(t *testing.T) {
	c, err := controller.New(fake.NewClientset(), nil, clock.RealClock{}, controller.Options{Namespaces: []string{"flex-provisioner"}})
	if err != nil {
		t.Fatal(err)
	}
	r := registry{metrics.NewKubeRegistry(), map[string]string{}}
	c.RegisterMetrics(r)
	series := tableOf(t, configurationPage, "series")
	series.mustList(t, 0, from("controller.RegisterMetrics", slices.Collect(maps.Keys(r.labels))...))
	for _, row := range series.rows {
		name, labels := spans(row[0])[0], strings.Join(spans(row[1]), ",")
		if want, known := r.labels[name]; known && labels != want {
			t.Errorf("%s, table | series |: `%s` has the labels %s; in the code they are %s", configurationPage, name, labels, want)
		}
	}
}

func TestThePagesListTheValuesOfEveryLabelOfASeries(t *testing.T) {
	s := readSource(t)
	labels := map[string]string{}
	for key, c := range s.constants {
		if (c.pkg == "series" || c.pkg == "run") && strings.HasPrefix(c.name, "label") {
			labels[c.value] = key
		}
	}
	values := tableOf(t, configurationPage, "label of a series")
	values.mustList(t, 0, labels)
	verbs := s.named("verb")
	for _, v := range contract.Verbs() {
		verbs[string(v)] = "contract.Verbs"
	}
	for label, want := range map[string]map[string]string{"verb": verbs, "phase": s.named("Phase"), "state": s.named("state")} {
		i := slices.IndexFunc(values.rows, func(row []string) bool { return row[0] == "`"+label+"`" })
		if i < 0 {
			continue // reported above
		}
		said := from("", spans(values.rows[i][1])...)
		for value, place := range want {
			if _, listed := said[value]; !listed {
				t.Errorf("%s, table | label of a series |: the row `%s` lacks the value `%s` (%s)", configurationPage, label, value, place)
			}
		}
		for value := range said {
			if want[value] == "" {
				t.Errorf("%s, table | label of a series |: the row `%s` has the value `%s`, which the code has not", configurationPage, label, value)
			}
		}
	}
}
