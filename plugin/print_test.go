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
