package plugin

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/audit"
)

func TestTheStatusPrintsALineOfAClassThatNoLongerExists(t *testing.T) {
	var out bytes.Buffer
	if err := (&printer{out: &out}).status(&Status{Classes: []Class{{Name: "gold", Bound: 1, States: map[string]int{"undoing": 2, "attempted": 1}}, {Name: "old", Unclassed: 3}}}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "\nclass old: no StorageClass of this provisioner has the name\ncause   PersistentVolumes of it exist: 3.") || !strings.Contains(text, "\nclass gold: 1 attempted, 2 undoing\n") {
		t.Errorf("it prints %s", text)
	}
}

func TestTheStatusPrintsHowFullVolumesAre(t *testing.T) {
	var out strings.Builder
	err := (&printer{out: &out}).status(&Status{Volumes: []audit.Usage{
		{Class: "gold", PV: "pvc-1", Namespace: "app", Claim: "data", Size: 10 << 30, Used: 9<<30 + 1},
		{Class: "gold", PV: "pvc-2", Size: 1 << 30},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pvc-1 app/data gold 9217Mi 10Gi 90%", "pvc-2 - gold 0Mi 1Gi 0%"} {
		if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, want) {
			t.Errorf("it prints %s, want %s", text, want)
		}
	}
}

// It printed nothing, as if the flag did nothing.
func TestTheStatusSaysThatNoListSaysHowFullVolumesAre(t *testing.T) {
	for listed, want := range map[bool]int{true: 1, false: 0} {
		var out strings.Builder
		if err := (&printer{out: &out}).status(&Status{listed: listed}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\nno list says how much a volume uses"); n != want {
			t.Errorf("listed %t: it prints %s", listed, out.String())
		}
	}
}

// Seven attempts that failed alike filled a terminal with the same lines.
func TestTheSameOutputIsPrintedOnce(t *testing.T) {
	long := strings.Repeat("mkvol: the pool does not answer. ", 6)
	var out strings.Builder
	err := Print(&out, time.Now(), &Report{Runs: []Run{
		{Verb: "provision", Attempt: 1, Verdict: "TryAgain", Message: long},
		{Verb: "delete", Attempt: 1, Verdict: "Done"},
		{Verb: "provision", Attempt: 2, Verdict: "TryAgain", Message: long},
		{Verb: "provision", Attempt: 3, Verdict: "TryAgain", Message: long},
		{Verb: "provision", Attempt: 4, Verdict: "TryAgain", Message: "short"},
		{Verb: "provision", Attempt: 5, Verdict: "TryAgain", Message: "short"},
	}})
	text := out.String()
	for part, want := range map[string]int{"does not answer": 6, "| (the same as attempt 3)": 2, "| short": 2} {
		if n := strings.Count(text, part); err != nil || n != want {
			t.Errorf("%q is there %d times, want %d: %v\n%s", part, n, want, err, text)
		}
	}
}

func TestTheStatusSaysWhatWaitsWithoutALeader(t *testing.T) {
	var out strings.Builder
	if err := (&printer{out: &out}).status(&Status{Idle: "no dispatcher leads"}); err != nil {
		t.Fatal(err)
	}
	if want := "\nno dispatcher leads, so no volume is created, expanded or deleted\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want %q at its end", out.String(), want)
	}
}
