package shell

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const nfs = `{"spec":{"nfs":{"server":"filer","path":"/a"}}}`

// The examples are those of RFC 7386, of objects, with one array of it.
func TestMergePatch(t *testing.T) {
	for _, test := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{"a":"b"}`, `{"a":{"b":{"c":null}}}`, `{"a":{"b":{}}}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"n":12345678901234567890}`, `{"m":0.10}`, `{"n":12345678901234567890,"m":0.10}`},
	} {
		target, err := decode([]byte(test[0]))
		must(t, err)
		patch, err := decode([]byte(test[1]))
		must(t, err)
		want, err := decode([]byte(test[2]))
		must(t, err)
		if got := merged(target, patch); !reflect.DeepEqual(got, want) {
			t.Errorf("%s and %s give %v", test[0], test[1], got)
		}
		if again, _ := decode([]byte(test[0])); !reflect.DeepEqual(target, again) {
			t.Errorf("%s is changed to %v", test[0], target)
		}
	}
}

func TestPVIsWrittenWithThePatchAndTheSkeleton(t *testing.T) {
	p := newPod(t, contract.Provision, 1)
	k := p.serve()
	if code := p.flex("pv", nfs); code != contract.ExitDone {
		t.Fatalf("exit %d: %s", code, &p.says)
	}
	if len(k.asked) != 1 || k.asked[0] != "POST /api/v1/persistentvolumes?fieldValidation=Strict" {
		t.Errorf("it asks %q", k.asked)
	}
	got, err := decode([]byte(k.pvs["pvc-"+uid(0)]))
	must(t, err)
	skeleton, err := decode([]byte(skeletonOf(uid(0))))
	must(t, err)
	patch, err := decode([]byte(nfs))
	must(t, err)
	if want := merged(skeleton, patch); !reflect.DeepEqual(got, want) {
		t.Errorf("it writes %v", got)
	}
	if p.message() != "" || strings.Contains(p.says.String(), token) {
		t.Errorf("it says %s%s", p.message(), &p.says)
	}
}

func TestLocalPVIsOnItsNode(t *testing.T) {
	p := newPod(t, contract.Provision, 1)
	k := p.serve()
	if code := p.flex("pv", "--local", `/volumes/"x`, `{"metadata":{"labels":{"a":"b"}}}`); code != contract.ExitDone {
		t.Fatalf("exit %d: %s", code, &p.says)
	}
	var pv struct {
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Local        struct{ Path string }
			NodeAffinity struct {
				Required struct {
					NodeSelectorTerms []struct {
						MatchExpressions []struct {
							Key, Operator string
							Values        []string
						}
					}
				}
			}
		}
	}
	must(t, json.Unmarshal([]byte(k.pvs["pvc-"+uid(0)]), &pv))
	where := pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0]
	if pv.Spec.Local.Path != `/volumes/"x` || where.Key != "kubernetes.io/hostname" || where.Operator != "In" || where.Values[0] != "host1" || pv.Metadata.Labels["a"] != "b" {
		t.Errorf("it writes %+v", pv)
	}
}

// The script may have created a volume, and exit codes that promise that it has not are not for flex
// pv.
func TestAWrongUseOfPVIsNotOneThatMadeNothing(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		change    func(p *pod)
		says      string
	}{
		"no patch":         {arguments: nil, says: "a patch is required"},
		"no path":          {arguments: []string{"--local"}, says: "a path is required"},
		"an empty path":    {arguments: []string{"--local", "", nfs}, says: "a path is required"},
		"words":            {arguments: []string{"{}", "{}"}, says: "in single quotes"},
		"no JSON":          {arguments: []string{`{"spec":`}, says: "must be a JSON object"},
		"no object":        {arguments: []string{`[]`}, says: "must be a JSON object"},
		"null":             {arguments: []string{`null`}, says: "must be a JSON object"},
		"two objects":      {arguments: []string{`{}{}`}, says: "must be a JSON object"},
		"two lines":        {arguments: []string{`{"spec":{"nfs":{"server":"filer","path":"/a\nb"}}}`}, says: `the text "/a\nb" has control characters`},
		"a terminal's":     {arguments: []string{`{"spec":{"csi":{"volumeAttributes":{"share":"\u001b[31m"}}}}`}, says: `the text "\x1b[31m" has control`},
		"in a list":        {arguments: []string{`{"spec":{"iscsi":{"portals":["192.0.2.1","\u0000"]}}}`}, says: `the text "\x00" has control`},
		"in a name":        {arguments: []string{`{"metadata":{"annotations":{"a\tb":"c"}}}`}, says: `the text "a\tb" has control`},
		"above":            {arguments: []string{`{"spec":{"nfs":{"server":"filer","path":"/a/../b"}}}`}, says: `leads to a directory above`},
		"above, at an end": {arguments: []string{`{"spec":{"nfs":{"server":"filer","path":"/a/.."}}}`}, says: `leads to a directory above`},
		"a local above":    {arguments: []string{"--local", "/volumes/../etc"}, says: `leads to a directory above`},
		"a local of lines": {arguments: []string{"--local", "/a\n"}, says: `the text "/a\n" has control`},
		"no node":          {arguments: []string{"--local", "/a"}, change: func(p *pod) { p.env["FLEX_SELECTED_HOSTNAME"] = "" }, says: "WaitForFirstConsumer"},
		"no skeleton":      {arguments: []string{nfs}, change: func(p *pod) { must(p.t, os.Remove(p.dir+"/pv.json")) }, says: "pv.json: no such file"},
		"no certificate":   {arguments: []string{nfs}, change: func(p *pod) { must(p.t, os.Remove(p.dir+"/account/ca.crt")) }, says: "not the certificate"},
		"another's":        {arguments: []string{nfs}, change: func(p *pod) { p.write("account/ca.crt", "") }, says: "does not answer"},
		"a List, no name":  {arguments: []string{nfs}, change: func(p *pod) { p.write("pv.json", `{"kind":"List"}`); p.env["FLEX_PV_NAME"] = "" }, says: "begin the script with flex each"},
		"a List, not in":   {arguments: []string{nfs}, change: func(p *pod) { p.write("pv.json", `{"kind":"List"}`) }, says: "does not contain the PersistentVolume"},
		"no URL":           {arguments: []string{nfs}, change: func(p *pod) { p.env["FLEX_KUBE_API"] = "https://a b" }, says: "the URL of the API server"},
		"a broken FLEX_PV": {arguments: []string{nfs}, change: func(p *pod) { p.env["FLEX_PV"] = "{" }, says: "in FLEX_PV"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.Provision, 1)
			k := p.serve()
			if test.change != nil {
				test.change(p)
			}
			if code := p.flex(append([]string{"pv"}, test.arguments...)...); code != contract.ExitTempFail || !strings.Contains(p.says.String(), test.says) {
				t.Errorf("exit %d: %s", code, &p.says)
			}
			if len(k.pvs) > 0 {
				t.Errorf("it has written %v", k.pvs)
			}
		})
	}
}

// Without a token the PV is described, by the same rule.
func TestATextThatIsRefusedIsNotDescribed(t *testing.T) {
	p := newPod(t, contract.Provision, 1)
	if code := p.flex("pv", `{"spec":{"nfs":{"server":"filer","path":"/a/../b"}}}`); code != contract.ExitTempFail || p.message() != "" {
		t.Errorf("exit %d, described: %s", code, p.message())
	}
}

// Dots and characters of any language are part of names.
func TestTextsThatOnlyLookWrongAreWritten(t *testing.T) {
	p := newPod(t, contract.Provision, 1)
	p.serve()
	if code := p.flex("pv", `{"spec":{"nfs":{"server":"filer","path":"/..a/b../c..d/.../größe 1"}}}`); code != contract.ExitDone {
		t.Errorf("exit %d: %s", code, &p.says)
	}
}

// Of a batch, a command has its own PV, with flex each in FLEX_PV.
func TestPVOfABatchIsFound(t *testing.T) {
	for _, variable := range []string{"", skeletonOf(uid(1))} {
		p := newPod(t, contract.Provision, 3)
		k := p.serve()
		p.env["FLEX_PV_NAME"], p.env["FLEX_PV"] = "pvc-"+uid(1), variable
		if code := p.flex("pv", nfs); code != contract.ExitDone || len(k.pvs) != 1 || k.pvs["pvc-"+uid(1)] == "" {
			t.Errorf("exit %d: %s: %v", code, &p.says, k.pvs)
		}
	}
}

// With write-pv: dispatcher the pod has no token.
func TestWithoutATokenThePVIsDescribed(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		message   string // a JSON object
		says      string // of a failure
	}{
		"a source":          {arguments: []string{nfs}, message: `{"source":{"nfs":{"server":"filer","path":"/a"}}}`},
		"the same capacity": {arguments: []string{`{"spec":{"capacity":{"storage":"1Gi"},"nfs":{"server":"f","path":"/"}}}`}, message: `{"source":{"nfs":{"server":"f","path":"/"}}}`},
		"a larger capacity": {arguments: []string{`{"spec":{"capacity":{"storage":"2Gi"},"nfs":{"server":"f","path":"/"}}}`}, message: `{"source":{"nfs":{"server":"f","path":"/"}},"capacity":"2Gi"}`},
		"a number":          {arguments: []string{`{"spec":{"capacity":{"storage":2147483648},"nfs":{}}}`}, message: `{"source":{"nfs":{}},"capacity":2147483648}`},
		"a node": {
			arguments: []string{"--local", "/v/x"},
			message:   `{"source":{"local":{"path":"/v/x"}},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["host1"]}]}]}}}`,
		},
		"an annotation":      {arguments: []string{`{"metadata":{"annotations":{"a":"b"}},"spec":{"nfs":{}}}`}, says: "changes more than the volume source"},
		"a policy":           {arguments: []string{`{"spec":{"volumeMode":null,"nfs":{}}}`}, says: "changes more than the volume source"},
		"more of a capacity": {arguments: []string{`{"spec":{"capacity":{"storage":{}},"nfs":{}}}`}, message: `{"source":{"nfs":{}},"capacity":{}}`},
		"too long":           {arguments: []string{`{"spec":{"nfs":{"path":"` + strings.Repeat("x", 5000) + `"}}}`}, says: "only 4096 are kept"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.Provision, 1)
			p.write("message", strings.Repeat("of an earlier call\n", 100))
			code := p.flex(append([]string{"pv"}, test.arguments...)...)
			if test.says != "" {
				if code != contract.ExitTempFail || !strings.Contains(p.says.String(), test.says) {
					t.Errorf("exit %d: %s", code, &p.says)
				}
				return
			}
			got, err := decode([]byte(p.message()))
			want, _ := decode([]byte(test.message))
			if code != contract.ExitDone || err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("exit %d: %s: %s", code, &p.says, p.message())
			}
		})
	}
}
