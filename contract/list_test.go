package contract_test

import (
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
