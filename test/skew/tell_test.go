package skew_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/invariants"
)

// happened lets a story happen, from an empty cluster to its end. Each object is read back from the
// patches as it was written.
func happened(t *testing.T, s story, b bases) (p *past) {
	t.Helper()
	inWorld(t, s, func(w *world) {
		w.stepped = true
		w.Step(func(int) int { return 0 })
		s.tell(w)
		invariants.Check(w.Cluster)
		p = w.past(b)
		p.decode(w.T, "of today", unchanged)
		w.mustBe(p)
	})
	if p == nil {
		t.FailNow()
	}
	return p
}

// mustBe checks that a story has the objects of the world.
func (w *world) mustBe(p *past) {
	w.T.Helper()
	for i, change := range w.Server.History() {
		var want, got any
		if change.Now != nil {
			want = plain(w.T, change.Now)
		}
		if p.decoded[i].Now != nil {
			got = plain(w.T, p.decoded[i].Now)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.T.Errorf("%s is not read as it was written (-written +read):\n%s", p.Changes[i].title(), diff)
		}
	}
}

func unchanged(_ string, object []byte) []byte { return object }

// TestTheStoriesOfTheUnreleasedVersionAreThoseOfToday compares which names this version writes with
// those in its folder. What a released version has written stays as it is.
func TestTheStoriesOfTheUnreleasedVersionAreThoseOfToday(t *testing.T) {
	t.Parallel()
	version := unreleased(t)
	b := bases{}
	if *write != "" || *update {
		b = happened(t, stories[0], nil).basesOf(t)
	}
	if *write != "" {
		writeYAML(t, filepath.Join(*write, "today", basesFile), b)
	}
	if *update && version != "" {
		writeYAML(t, filepath.Join("testdata", version, basesFile), b)
	}
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			today := happened(t, s, b)
			if *write != "" {
				today.write(t, filepath.Join(*write, "today"))
			}
			if version == "" {
				return
			}
			if *update {
				today.write(t, filepath.Join("testdata", version))
			}
			stored := readPast(t, filepath.Join("testdata", version, s.name+".yaml"))
			if diff := cmp.Diff(namesIn(stored), namesIn(today)); diff != "" {
				t.Errorf("what this version writes has changed (-in its folder +today). If its release still is to come, make golden writes the folder:\n%s", diff)
			}
		})
	}
}

// namesIn returns the names of ours in the objects of a story: labels, annotations, finalizers and
// gates, and the fields of records and requests.
func namesIn(p *past) []string {
	names := map[string]bool{}
	for _, change := range p.decoded {
		if change.Now == nil {
			continue
		}
		text, err := json.Marshal(change.Now)
		if err != nil {
			panic(err)
		}
		var object any
		if err := json.Unmarshal(text, &object); err != nil {
			panic(err)
		}
		addNames(names, change.Resource, object)
	}
	var out []string
	for name := range names {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// addNames adds the names of ours in a value, which are keys or texts.
func addNames(names map[string]bool, in string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if strings.Contains(key, contract.Domain) {
				name, _, _ := strings.Cut(in+" "+withoutUID(key), "=")
				names[name] = true
			}
			if text, isText := member.(string); isText && (key == jobs.AnnRecord || key == jobs.AnnRequest) {
				addFields(names, in+" "+key, text)
			}
			addNames(names, in, member)
		}
	case []any:
		for _, member := range v {
			addNames(names, in, member)
		}
	case string:
		if strings.HasPrefix(v, contract.Domain) && !strings.ContainsAny(v, " \n") {
			names[in+" "+v] = true
		}
	}
}

// addFields adds the fields of the JSON documents in a text.
func addFields(names map[string]bool, in, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			panic(err)
		}
		for field := range fields {
			names[in+": "+field] = true
		}
	}
}

// withoutUID returns the name of the label that has the UID of a claim in it.
func withoutUID(key string) string {
	if strings.HasPrefix(key, jobs.LabelMember+"/") {
		return jobs.LabelMember
	}
	return key
}
