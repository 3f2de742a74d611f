package run

import (
	"bufio"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/audit"
)

// Every line of a list is a volume with a name or is reported as another one, and volumes that were
// read can be written, and are then read as the same.
func FuzzList(f *testing.F) {
	f.Add(`{"uid":"u","volume":"v1","size":1,"claimNamespace":"app","claimName":"data","clusterUID":"c"}` + "\nlevel=INFO msg=Starting\n" + `{"a":"log line"}` + "\n")
	f.Add(`{"uid":"u","volume":"v1","size":1,"more":{"a":[1]}}` + "\r\n\r\n" + `{"volume":""}` + "\n{\"volume\":\"\xff\"}")
	f.Add(`{"volume":"v1","size":"1"}` + "\n" + `{"Volume":"v2"}{"volume":"v3"}` + "\n\n" + `{"volume":"v4","size":1e3}`)
	f.Fuzz(func(t *testing.T, text string) {
		var others []string
		volumes, err := readLines(strings.NewReader(text), func(line string) error {
			others = append(others, line)
			return nil
		})
		if errors.Is(err, bufio.ErrTooLong) && len(text) > maxLine || err != nil && strings.Contains(err.Error(), "a volume has a name of") && len(text) > longestName {
			return // TestAListHasALimitOfVolumesAndOfTheirNames is about these
		}
		if err != nil {
			t.Fatal(err)
		}
		if lines := len(slices.Collect(strings.Lines(text))); len(volumes)+len(others) != lines {
			t.Errorf("%q has %d lines, and %d volumes and %d others are read", text, lines, len(volumes), len(others))
		}
		for _, other := range others {
			if _, err := ReadVolumes(strings.NewReader(other + "\n")); err == nil {
				t.Errorf("%q is no volume among others, and one alone", other)
			}
		}
		mustBeReadAgain(t, volumes)
		if _, err := ReadVolumes(strings.NewReader(text)); (err == nil) != (len(others) == 0) {
			t.Errorf("%q has %d lines that are no volume, and is read as a list with the error %v", text, len(others), err)
		}
	})
}

func mustBeReadAgain(t *testing.T, volumes []audit.Volume) {
	t.Helper()
	var text strings.Builder
	lines := json.NewEncoder(&text)
	for _, v := range volumes {
		if err := lines.Encode(v); err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", v, err)
		}
		if v.Volume == "" {
			t.Errorf("%+v has no name", v)
		}
	}
	again, err := ReadVolumes(strings.NewReader(text.String()))
	if diff := cmp.Diff(volumes, again); err != nil || diff != "" {
		t.Errorf("%s is read as something else (%v):\n%s", text.String(), err, diff)
	}
}
