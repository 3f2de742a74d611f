package contract_test

import (
	"reflect"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func result(code int32, message string, capacity contract.Capacity) contract.Result {
	r := contract.NewResult("u", code)
	r.Message, r.Capacity = message, capacity
	return r
}

func TestResultIsOneLineOfJSON(t *testing.T) {
	for want, r := range map[string]contract.Result{
		`{"uid":"u","code":0}` + "\n":                                        result(0, "", ""),
		`{"uid":"u","code":0,"capacity":7516192768}` + "\n":                  result(0, "", contract.Bytes(7<<30)),
		`{"uid":"u","code":0,"capacity":"2Gi"}` + "\n":                       result(0, "", "2Gi"),
		`{"uid":"u","code":65,"message":"claim: too\nlarge \"now\""}` + "\n": result(65, "claim: too\nlarge \"now\"", ""),
	} {
		line, err := r.Encode()
		if err != nil || line != want {
			t.Errorf("encoded %q, %v, want %q", line, err, want)
		}
		if got := contract.DecodeResults("for people\n" + line); len(got) != 1 || !reflect.DeepEqual(got[0], r) {
			t.Errorf("%q is read as %+v", line, got)
		}
		if r.IsDone() != (*r.Code == 0) {
			t.Errorf("%q is done: %t", line, r.IsDone())
		}
	}
}

func TestWhatIsNoResultIsForPeople(t *testing.T) {
	for line, want := range map[string]int{
		`{"uid":"u","code":0,"capacity":null,"more":[]}`: 1,
		`  {"uid":"u","code":0}`:                         1,
		`{"uid":"u","code":0,"capacity":1e3}`:            1,
		`{"uid":"u"}`:                                    0,
		`{"code":0}`:                                     0,
		`{"uid":"u","code":"0"}`:                         0,
		`{"uid":"u","code":0,"capacity":""}`:             0,
		`{"uid":"u","code":0,"capacity":true}`:           0,
		`{"uid":"u","code":0,"capacity":{}}`:             0,
		`{"uid":"u","code":0,"capacity":"\u0032Gi"}`:     0,
		`{"uid":"u","code":0} done`:                      0,
		`claim: {"uid":"u","code":0}`:                    0,
		``:                                               0,
	} {
		if got := contract.DecodeResults(line); len(got) != want {
			t.Errorf("%s holds %d results, want %d", line, len(got), want)
		}
	}
}
