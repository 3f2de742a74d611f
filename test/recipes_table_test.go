package test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rows returns the cells of a table's rows, without its head, from a line that begins with a text.
func rows(t *testing.T, file, head string) (titles []string, out [][]string) {
	t.Helper()
	_, text, found := strings.Cut(content(t, file), "\n"+head)
	if !found {
		t.Fatalf("%s has no table %q", file, head)
	}
	for line := range strings.Lines(head + text) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out = append(out, cells)
	}
	return out[0], out[2:]
}

// abilities returns what a row of the README says that a recipe can do: its ticks, by the titles of
// the table, and the words of its last cell.
func abilities(titles, cells []string) []string {
	var out []string
	for i, cell := range cells {
		if cell == "✓" {
			out = append(out, titles[i])
		}
	}
	if more := cells[len(cells)-1]; more != "" {
		out = append(out, strings.Split(more, ", ")...)
	}
	return out
}

// Each tick of the README's tables has a test, and each test a tick. PART=recipes of
// hack/e2e-long.sh fails if one of these tests has not passed.
func TestEachTickOfARecipeHasATest(t *testing.T) {
	link := regexp.MustCompile(`^\[([a-z-]+)\]`)
	var ticks, tested []string
	without := recipes(t)
	delete(without, "nfs-tiers") // of the page of nfs
	for _, head := range []string{"| on disks of nodes ", "| over the network "} {
		titles, listed := rows(t, "README.md", head)
		for _, cells := range listed {
			name := link.FindStringSubmatch(cells[0])[1]
			delete(without, name)
			for _, ability := range abilities(titles, cells) {
				if name != "cinder-provisioner" { // whose tests run against Cinder
					ticks = append(ticks, name+": "+ability)
				}
			}
		}
	}
	_, tests := rows(t, "docs/recipes/README.md", "| recipe | ticks ")
	var sources strings.Builder
	for _, file := range tracked(t, "_test.go") {
		sources.WriteString(content(t, file))
	}
	for _, cells := range tests {
		for tick := range strings.SplitSeq(cells[1], ", ") {
			tested = append(tested, cells[0]+": "+tick)
		}
		for _, test := range regexp.MustCompile("`(Test\\w+)").FindAllStringSubmatch(cells[2], -1) {
			if !strings.Contains(sources.String(), "\nfunc "+test[1]+"(t *testing.T) {") {
				t.Errorf("there is no test %s", test[1])
			}
		}
	}
	if len(without) > 0 {
		t.Errorf("README.md has no row for %v", without)
	}
	slices.Sort(ticks)
	slices.Sort(tested)
	if tested = slices.Compact(tested); !slices.Equal(ticks, tested) || len(ticks) < 30 {
		t.Errorf("the ticks are\n%q, and those with a test\n%q", ticks, tested)
	}
}

// kubectl flex conform has tested every recipe in the lab, or the page says why not. PART=conform-recipes of
// hack/e2e-long.sh does it.
func TestConformTestsEveryRecipe(t *testing.T) {
	text := content(t, "test/e2e/conform_recipes_test.go")
	var tested []string
	for _, m := range regexp.MustCompile(`\bconfig: "([a-z-]+)"`).FindAllStringSubmatch(text, -1) {
		tested = append(tested, m[1])
	}
	var all []string
	for _, file := range tracked(t, ".yaml") {
		if name, is := strings.CutPrefix(file, "configmaps/"); is {
			all = append(all, strings.TrimSuffix(name, ".yaml"))
		}
	}
	slices.Sort(tested)
	slices.Sort(all)
	if !slices.Equal(tested, all) || len(all) < 20 {
		t.Errorf("conform tests\n%q, and the ConfigMaps are\n%q", tested, all)
	}
	_, untested := rows(t, "docs/recipes/README.md", "| recipe | promise | why ")
	for _, name := range all {
		_, entry, _ := strings.Cut(text, `config: "`+name+`"`)
		entry, _, _ = strings.Cut(entry, `config: "`)
		is := strings.Contains(entry, "notServed: ") || strings.Contains(entry, "skipped: ")
		if said := slices.ContainsFunc(untested, func(row []string) bool { return slices.Contains(strings.Split(row[0], ", "), name) }); said != is {
			t.Errorf("%s: conform leaves out a promise: %t, and the page says so: %t", name, is, said)
		}
	}
}
