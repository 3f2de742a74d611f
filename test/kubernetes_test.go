package test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// supportedPage has the table of the supported versions of Kubernetes.
const supportedPage = "docs/clusters.md"

var (
	kubernetesModule = regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes v(1\.\d+\.\d+)$`)
	supportedRow     = regexp.MustCompile(`^\| (1\.\d+) \| ([\d-]+) \| ([\d-]+) \| (1\.\d+\.\d+)`)
)

// supported is a row of the table of supported versions: the newest is the first.
type supported struct {
	line                  int
	minor, tested         string
	released, supportEnds time.Time
}

// supportedVersions returns the rows of the table of supported versions in a page.
func supportedVersions(page string) (out []supported, err error) {
	for i, line := range strings.Split(page, "\n") {
		m := supportedRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		row := supported{line: i + 1, minor: m[1], tested: m[4]}
		if row.released, err = time.Parse(time.DateOnly, m[2]); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if row.supportEnds, err = time.Parse(time.DateOnly, m[3]); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		out = append(out, row)
	}
	return out, nil
}

// A minor version followed the one before after 126 days, twice.
const untilTheNext = 135 * 24 * time.Hour

// outdated returns what time has made wrong of the table: the line to change, and how.
func outdated(rows []supported, now time.Time) (out []string) {
	for i, row := range rows {
		at := fmt.Sprintf("%s:%d: ", supportedPage, row.line)
		if i == 0 && now.After(row.released.Add(untilTheNext)) {
			out = append(out, at+"a minor version after "+row.minor+" is due: add it above this line")
		}
		if now.After(row.supportEnds) {
			out = append(out, at+"Kubernetes "+row.minor+" has reached its end of life: remove this line")
		}
	}
	return out
}

// rowsOfThePage returns the rows of the table of supported versions.
func rowsOfThePage(t *testing.T) []supported {
	t.Helper()
	rows, err := supportedVersions(content(t, supportedPage))
	if err != nil || len(rows) != 3 {
		t.Fatalf("%s lists %d versions of Kubernetes, want 3: %v", supportedPage, len(rows), err)
	}
	return rows
}

// The three newest minor versions are supported. The pages name those whose modules test/cluster has,
// on which make e2e-long runs the tests.
func TestTheSupportedKubernetesAreThoseThatAreTested(t *testing.T) {
	var tested, minors []string
	for _, file := range tracked(t, ".mod") {
		if file != "test/cluster/go.mod" && !strings.HasPrefix(file, "test/cluster/kube-") {
			continue
		}
		found := kubernetesModule.FindStringSubmatch(content(t, file))
		if found == nil {
			t.Fatalf("%s requires no Kubernetes", file)
		}
		tested = append(tested, found[1])
	}
	slices.Sort(tested)
	newest := kubernetesModule.FindStringSubmatch(content(t, "test/cluster/go.mod"))[1]
	for i, row := range rowsOfThePage(t) {
		minors = append([]string{row.minor}, minors...)
		at := len(tested) - 1 - i
		if at < 0 || tested[at] != row.tested || i == 0 && row.tested != newest {
			t.Errorf("%s:%d: tested on %s, but test/cluster has the modules of %v, and its newest is %s",
				supportedPage, row.line, row.tested, tested, newest)
		}
	}
	from, err := strconv.Atoi(strings.TrimPrefix(minors[0], "1."))
	want := []string{minors[0], fmt.Sprint("1.", from+1), fmt.Sprint("1.", from+2)}
	if err != nil || !slices.Equal(minors, want) {
		t.Errorf("the versions are %v, want %v", minors, want)
	}
	list := minors[0] + ", " + minors[1] + " and " + minors[2]
	for page, want := range map[string]string{
		"README.md":               "now " + list + ", and is tested from end to end on each",
		"CHANGELOG.md":            "tested on Kubernetes " + list,
		"deploy/chart/Chart.yaml": `kubeVersion: ">=` + minors[0] + `.0-0"`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(content(t, page)), " "), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}

func TestATableOfKubernetesThatTimeHasPassedIsNoticed(t *testing.T) {
	rows, err := supportedVersions("a\n" +
		"| 1.37 | 2026-08-26 | 2027-10-28 | 1.37.2 |\n" +
		"| 1.36 | 2026-04-22 | 2027-06-28 | 1.36.3 |\n")
	if err != nil {
		t.Fatal(err)
	}
	for day, want := range map[string][]string{
		"2026-12-31": nil,
		"2027-02-01": {"docs/clusters.md:2: a minor version after 1.37 is due: add it above this line"},
		"2027-07-01": {
			"docs/clusters.md:2: a minor version after 1.37 is due: add it above this line",
			"docs/clusters.md:3: Kubernetes 1.36 has reached its end of life: remove this line",
		},
	} {
		now, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		if got := outdated(rows, now); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", day, got, want)
		}
	}
}
