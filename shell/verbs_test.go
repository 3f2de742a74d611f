package shell

import (
	"os"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestAVerdictHasItsCodeAndItsReason(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		message   string // before
		code      int
		says      string
	}{
		"refuse":          {[]string{"refuse", "request less"}, "", 65, "claim: request less\n"},
		"full":            {[]string{"full", "the filer is full"}, "", 73, "claim: the filer is full\n"},
		"again":           {[]string{"again", "the filer does not answer"}, "", 75, "claim: the filer does not answer\n"},
		"misconfigured":   {[]string{"misconfigured", "the parameter a is b"}, "", 78, "the parameter a is b\n"},
		"denied":          {[]string{"denied", "the login is refused"}, "", 77, "the login is refused\n"},
		"lines":           {[]string{"misconfigured", "a\nclaim: b\r\n\x1b[31mc\u2028d"}, "", 78, "a claim: b ?[31mc d\n"},
		"words":           {[]string{"refuse", "request", "less"}, "", 65, "claim: request less\n"},
		"a prefix":        {[]string{"refuse", "claim: request less"}, "", 65, "claim: request less\n"},
		"nothing":         {[]string{"full"}, "", 73, "claim: the provisioner gives no reason\n"},
		"an empty reason": {[]string{"refuse", ""}, "", 65, "claim: the provisioner gives no reason\n"},
		"beside a message": {
			[]string{"refuse", "request less"}, "a line\n", 65, "claim: request less\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.Provision, 1)
			p.write("message", test.message)
			if code := p.flex(test.arguments...); code != test.code || p.says.String() != test.says {
				t.Errorf("exit %d: %q", code, &p.says)
			}
			want := test.message
			if want != "" { // the log is not read then
				want += test.says
			}
			if p.message() != want {
				t.Errorf("the message is %q", p.message())
			}
		})
	}
	p := newPod(t, contract.Provision, 1)
	must(t, os.Remove(p.dir+"/message"))
	if code := p.flex("refuse", "x"); code != contract.ExitBadRequest {
		t.Errorf("without a message, exit %d: %s", code, &p.says)
	}
}

func TestAKeyThatIsNeededHasAValue(t *testing.T) {
	p := newPod(t, contract.Provision, 1)
	p.env["FLEX_BASE_DIR"], p.env["FLEX_NFS_SERVER"] = "/srv", ""
	for want, keys := range map[int][]string{contract.ExitDone: {"base-dir"}, contract.ExitConfig: {"base-dir", "nfs-server"}, contract.ExitUsage: {}} {
		p.says.Reset()
		if code := p.flex(append([]string{"need"}, keys...)...); code != want {
			t.Errorf("need %q: exit %d", keys, code)
		}
		if said := p.says.String(); want == contract.ExitConfig && said != "the config lacks the key nfs-server\n" {
			t.Errorf("it says %q", said)
		}
	}
}

func TestEveryVerdictIsOneOfTheContract(t *testing.T) {
	seen := map[contract.Verdict]bool{}
	for _, v := range verdicts {
		of := contract.VerdictOf(v.code)
		if seen[of] || of == contract.Done {
			t.Errorf("%s is %s", v.name, of)
		}
		if v.forUser == of.MadeNothing() {
			t.Errorf("%s is %s: who made nothing for a user says so to the administrator", v.name, of)
		}
		seen[of] = true
	}
	if len(seen) != 5 {
		t.Errorf("the verdicts are %v", seen)
	}
}

func TestGrownIsTheResultOfAnExpand(t *testing.T) {
	for size, want := range map[string]string{"2Gi": `"2Gi"`, "2147483648": "2147483648", "": "", "much": "", "2G i": "", "\n": ""} {
		p := newPod(t, contract.Expand, 1)
		p.write("message", "claim: it takes a minute\n")
		code := p.flex("grown", size)
		line := strings.TrimPrefix(p.message(), "claim: it takes a minute\n")
		if want == "" {
			if code != contract.ExitTempFail || line != "" {
				t.Errorf("%q: exit %d: %s: %s", size, code, &p.says, line)
			}
			continue
		}
		if code != contract.ExitDone || line != `{"uid":"`+uid(0)+`","code":0,"capacity":`+want+"}\n" {
			t.Errorf("%q: exit %d: %s: %s", size, code, &p.says, line)
		}
	}
}

const noted0 = `{"uid":"aaaaaaaa-2222-3333-4444-000000000000","volume":"pvc-aaaaaaaa-2222-3333-4444-000000000000","size":1073741824,` +
	`"claimNamespace":"default","claimName":"data-0","storageClass":"gold","clusterUID":"c-1"}` + "\n"

func TestNoteWritesTheLineOfTheList(t *testing.T) {
	p := newPod(t, contract.Provision, 3)
	dir := p.dir + "/notes"
	must(t, os.Mkdir(dir, 0o700))
	p.env["FLEX_CLAIM_UID"] = uid(0)
	for range 2 { // a rerun replaces it
		if code := p.flex("note", dir+"/pvc-0"); code != contract.ExitDone {
			t.Fatalf("exit %d: %s", code, &p.says)
		}
	}
	text, err := os.ReadFile(dir + "/pvc-0")
	must(t, err)
	if string(text) != noted0 {
		t.Errorf("it writes %s", text)
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("it leaves %v", entries)
	}
}

func TestAWrongNoteWritesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		path, uid, says string
	}{
		"no file":       {"", uid(0), "a file is required"},
		"a directory":   {"/notes/", uid(0), "must end with the name of a file"},
		"a hidden file": {"/notes/.x", uid(0), "does not begin with a dot"},
		"no parent":     {"/no/such", uid(0), "no such file"},
		"no claim":      {"/notes/x", "", "FLEX_CLAIM_UID is empty"},
		"another claim": {"/notes/x", uid(9), "none of the 3 requests"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.Provision, 3)
			must(t, os.Mkdir(p.dir+"/notes", 0o700))
			p.env["FLEX_CLAIM_UID"] = test.uid
			path := test.path
			if path != "" {
				path = p.dir + path
			}
			if code := p.flex("note", path); code != contract.ExitTempFail || !strings.Contains(p.says.String(), test.says) {
				t.Errorf("exit %d: %s", code, &p.says)
			}
			if entries, err := os.ReadDir(p.dir + "/notes"); err != nil || len(entries) > 0 {
				t.Errorf("it leaves %v, %v", entries, err)
			}
		})
	}
}

func TestListPrintsNotesAndTheirNumber(t *testing.T) {
	p := newPod(t, contract.List, 1)
	p.write("notes/pvc-0", noted0)
	p.write("notes/pvc-1", strings.ReplaceAll(noted0, uid(0), uid(1)))
	p.write("notes/.pvc-2.123", noted0[:40]) // of a note that was killed
	for name, test := range map[string]struct {
		paths []string
		lines string
	}{
		"nothing":             {nil, "0"},
		"a file":              {[]string{"/notes/pvc-0"}, "1"},
		"files":               {[]string{"/notes/pvc-0", "/notes/pvc-1"}, "2"},
		"a directory":         {[]string{"/notes"}, "2"},
		"an empty directory":  {[]string{"/empty"}, "0"},
		"both":                {[]string{"/notes", "/notes/pvc-1"}, "3"},
		"a file of two lines": {[]string{"/both"}, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.MkdirAll(p.dir+"/empty", 0o700))
			p.write("both", noted0+noted0)
			arguments := []string{"list"}
			for _, path := range test.paths {
				arguments = append(arguments, p.dir+path)
			}
			code := p.flex(arguments...)
			if want := `{"lines":` + test.lines + "}\n"; code != contract.ExitDone || p.message() != want || strings.Count(p.says.String(), "\n") != int(test.lines[0]-'0') {
				t.Errorf("exit %d: %s: %s", code, p.message(), &p.says)
			}
		})
	}
}

// A note is made before its volume, so the list alone says what the volume uses.
func TestListAddsWhatVolumesUse(t *testing.T) {
	p := newPod(t, contract.List, 1)
	p.write("notes/pvc-0", noted0)
	own := strings.ReplaceAll(strings.Replace(noted0, "{", `{"tier":"cold",`, 1), uid(0), uid(1))
	p.write("notes/pvc-1", own)
	p.write("used", "pvc-"+uid(1)+" 4096\npvc-"+uid(2)+" 1\n\tpvc-"+uid(3)+"  0\n")
	if code := p.flex("list", "--used", p.dir+"/used", p.dir+"/notes"); code != contract.ExitDone {
		t.Fatalf("exit %d: %s", code, &p.says)
	}
	want := noted0 + strings.Replace(own, "}", `,"used":4096}`, 1)
	if p.says.String() != want || p.message() != contract.EncodeListEnd(2) {
		t.Errorf("it says %s, %s, want %s", &p.says, p.message(), want)
	}
	for _, odd := range []string{"pvc-1\n", "pvc-1 -\n", "pvc-1 -1\n", "pvc-1 1 2\n", "\n", "pvc-1 9223372036854775808\n"} {
		p := newPod(t, contract.List, 1)
		p.write("notes/pvc-0", noted0)
		p.write("used", odd)
		if code := p.flex("list", "--used", p.dir+"/used", p.dir+"/notes"); code != contract.ExitTempFail || p.message() != "" {
			t.Errorf("%q: exit %d: %s", odd, code, &p.says)
		}
	}
	if code := newPod(t, contract.List, 1).flex("list", "--used"); code != contract.ExitUsage {
		t.Errorf("without a file: exit %d", code)
	}
}

// An audit would take a volume that is not listed for lost, and delete one whose line is damaged.
func TestAListThatIsNotWholeIsAnError(t *testing.T) {
	for name, content := range map[string]string{
		"cut": noted0[:100], "no line break": strings.TrimSuffix(noted0, "\n"), "empty": "", "an empty line": noted0 + "\n", "no UID": `{"volume":"a"}` + "\n",
		"no volume": `{"uid":"a"}` + "\n", "words": "hello\n", "the second": noted0 + noted0[:50] + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.List, 1)
			p.write("notes/pvc-0", noted0)
			p.write("notes/pvc-1", content)
			for _, path := range []string{p.dir + "/notes", p.dir + "/notes/pvc-1"} {
				if code := p.flex("list", path); code != contract.ExitTempFail || p.message() != "" || strings.Contains(p.says.String(), `{"uid"`) {
					t.Errorf("exit %d: %s: %s", code, p.message(), &p.says)
				}
			}
		})
	}
	p := newPod(t, contract.List, 1)
	if code := p.flex("list", p.dir+"/no/*.json"); code != contract.ExitTempFail || !strings.Contains(p.says.String(), "name the directory instead") {
		t.Errorf("exit %d: %s", code, &p.says)
	}
}
