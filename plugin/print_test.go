package plugin

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheStatusPrintsALineOfAClassThatNoLongerExists(t *testing.T) {
	var out bytes.Buffer
	if err := (&printer{out: &out}).status(&Status{Classes: []Class{{Name: "gold", Bound: 1}, {Name: "old", Unclassed: 3}}}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "\nclass old: no StorageClass of this provisioner has the name, and PersistentVolumes of it exist: 3.") || strings.Contains(text, "class gold:") {
		t.Errorf("it prints %s", text)
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
