package contract_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Requests that were read can be written, and are then read as the same, all at once and one by
// one.
func FuzzDecodeRequests(f *testing.F) {
	f.Add([]byte(`{"version":"flex-provisioner.io/v1","verb":"provision","requests":[{"uid":"u1","size":1,"properties":{"a":"b"}},{"uid":"u2","source":{"name":"x"}}]}`))
	f.Add([]byte(`{"version":"flex-provisioner.io/v1","verb":"delete","requests":[{"uid":"u1","undo":true},{"uid":"u1"}]}`))
	f.Add([]byte(`{"version":"flex-provisioner.io/v2","verb":"list"}`))
	f.Add([]byte(`{"Version":"flex-provisioner.io/v1","VERB":"expand","requests":null,"requests":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		requests, err := contract.DecodeRequests(data)
		if err != nil {
			return
		}
		text, err := requests.Encode()
		if err != nil {
			t.Fatalf("%q was read and cannot be written: %v", data, err)
		}
		again, err := contract.DecodeRequests([]byte(text))
		if diff := cmp.Diff(requests, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%s is read as something else (%v):\n%s", text, err, diff)
		}
		for _, want := range again.Items {
			one, i, n, err := contract.DecodeRequest([]byte(text), want.UID)
			if err != nil || n != len(again.Items) || one.UID != want.UID {
				t.Fatalf("the request of %q is number %d of %d: %+v, %v", want.UID, i, n, one, err)
			}
			if diff := cmp.Diff(again.Items[i], one); diff != "" {
				t.Errorf("the request of %q alone:\n%s", want.UID, diff)
			}
		}
	})
}

// The last line that says how many volumes a list has counts, whatever is before it and after it.
func FuzzDecodeListEnd(f *testing.F) {
	f.Add("level=INFO msg=Starting\n"+`{"lines":3}`, "bye", 12)
	f.Add(`{"lines":1}{"lines":2}`, `{"lines":"12"}`, 0)
	f.Add(`{"uid":"u","volume":"v"}`, "  {\"LINES\": 7, \"more\": {}}\r", -1)
	f.Add(`{"lines":null}`, `{"lines":99999999999999999999}`, 1<<31)
	f.Fuzz(func(t *testing.T, before, after string, n int) {
		want, said := contract.DecodeListEnd(after)
		if !said {
			want, said = contract.DecodeListEnd(before)
		}
		if volumes, is := contract.DecodeListEnd(before + "\n" + after); is != said || volumes != want {
			t.Errorf("%q and %q say %d, %t, and together %d, %t", before, after, want, said, volumes, is)
		}
		if volumes, is := contract.DecodeListEnd(before + "\n" + contract.EncodeListEnd(n)); !is || volumes != n {
			t.Errorf("%q and the end of a list of %d volumes say %d, %t", before, n, volumes, is)
		}
	})
}

// Every result that was read from a message can be written as one line, which is read as the same,
// and which is not for the claim's user.
func FuzzDecodeResults(f *testing.F) {
	f.Add("claim: no room\n" + `{"uid":"u1","code":0,"capacity":"2Gi"}` + "\n" + `{"uid":"u2","code":75,"message":"claim: busy"}`)
	f.Add(`{"uid":"u1","code":0,"capacity":1073741824}` + "\r\n" + `{"uid":"u1","code":null}` + "\n{}")
	f.Add(`{"uid":"u1","code":0,"capacity":1e3}` + "\n  claim:   spaced \n")
	f.Fuzz(func(t *testing.T, message string) {
		for _, r := range contract.DecodeResults(message) {
			line, err := r.Encode()
			if err != nil {
				t.Fatalf("%+v was read and cannot be written: %v", r, err)
			}
			if strings.Index(line, "\n") != len(line)-1 {
				t.Errorf("%q is not one line", line)
			}
			if diff := cmp.Diff([]contract.Result{r}, contract.DecodeResults(line)); diff != "" {
				t.Errorf("%s is read as something else:\n%s", line, diff)
			}
			if text := contract.ForClaim(line); text != "" {
				t.Errorf("the result %s is shown to the claim's user as %q", line, text)
			}
		}
		if text := contract.ForClaim(message); strings.ContainsAny(text, "\n") {
			t.Errorf("%q for the claim's user has several lines", text)
		}
	})
}
