package contract_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestTheEndOfAListSaysHowManyVolumesItHas(t *testing.T) {
	for message, want := range map[string]struct {
		volumes int
		said    bool
	}{
		contract.EncodeListEnd(12):                           {12, true},
		"12 volumes\n" + contract.EncodeListEnd(0) + "bye\n": {0, true},
		"":                       {},
		"12 volumes":             {},
		`{"uid":"u","code":0}`:   {},
		`{"lines":"12"}`:         {},
		`{"lines":1}{"lines":2}`: {},
	} {
		if volumes, said := contract.DecodeListEnd(message); volumes != want.volumes || said != want.said {
			t.Errorf("%q says %d, %t", message, volumes, said)
		}
	}
}

// An image may have had a field of its own of this name, and no volume of its list is lost by it.
func TestAListedVolumeSaysWhatItUsesOrNothing(t *testing.T) {
	for text, want := range map[string]contract.Used{
		`,"used":0`:          contract.UsedBytes(0),
		`,"used":1073741824`: contract.UsedBytes(1 << 30),
		``:                   {},
		`,"used":null`:       {},
		`,"used":-1`:         {},
		`,"used":1.5`:        {},
		`,"used":"12"`:       {},
		`,"used":{"GiB":1}`:  {},
	} {
		var listed contract.Listed
		if err := json.Unmarshal([]byte(`{"uid":"u","volume":"v","size":1`+text+`}`), &listed); err != nil || listed.Used != want || listed.Volume != "v" {
			t.Errorf("%s is read as %+v: %v", text, listed, err)
		}
		again, err := json.Marshal(listed)
		if said := strings.Contains(string(again), `"used"`); err != nil || said != want.Known {
			t.Errorf("%s is written as %s: %v", text, again, err)
		}
	}
}
