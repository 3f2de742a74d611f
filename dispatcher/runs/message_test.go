package runs_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

func TestMessagesAreMadePrintableAndShort(t *testing.T) {
	huge := strings.Repeat("0123456789abcde\n", 10<<20/16)
	for name, test := range map[string]struct {
		said  string
		check func(string) bool
	}{
		"binary":           {"\x00\x01\xff\xfe\x1b[31mred\x1b[0m\r\nok\x7f", func(s string) bool { return s == "[31mred[0m\nok" }},
		"10 MB":            {huge + "the end", func(s string) bool { return strings.HasSuffix(s, "abcde\nthe end") }},
		"1 MB in one line": {strings.Repeat("ü", 1<<19), func(s string) bool { return strings.HasPrefix(s, "…ü") }},
		"1 MB of bytes":    {strings.Repeat("\xfe\x00", 1<<19), func(s string) bool { return s == "" }},
		"blank":            {" \n\t\n", func(s string) bool { return s == "" }},
		"the user's line before much else": {"claim: no such type\n" + huge, func(s string) bool {
			return contract.ForClaim(s) == "no such type" && strings.HasSuffix(s, "abcde")
		}},
		"1 MB for the user": {"claim: first\n" + strings.Repeat("claim: more\n", 1<<17), func(s string) bool {
			return strings.HasPrefix(contract.ForClaim(s), "first more")
		}},
		"a cut makes no line for the user": {strings.Repeat("x", 5000) + strings.Repeat("claim: password=s3cret ", 100), func(s string) bool {
			return contract.ForClaim(s) == ""
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := runs.Read(failed(), []*corev1.Pod{exited(75, test.said)}, now).Message
			if !utf8.ValidString(got) || len(got) > 1024 {
				t.Fatalf("%d bytes, valid %v", len(got), utf8.ValidString(got))
			}
			if !test.check(got) {
				t.Errorf("kept: %q", got)
			}
		})
	}
}

// However a message is cut, no line for the user appears that was none.
func TestNoCutMakesALineForTheUser(t *testing.T) {
	for pad := range 1100 {
		said := "begin\n" + strings.Repeat("x", 1+pad) + "claim: s3cret" + strings.Repeat("y", 1005) + "\nend"
		if got := runs.Read(failed(), []*corev1.Pod{exited(1, said)}, now).Message; contract.ForClaim(got) != "" {
			t.Fatalf("with %d bytes before it: %q", 1+pad, got)
		}
	}
}

func TestOnlyMarkedLinesAreForTheUser(t *testing.T) {
	for said, want := range map[string]string{
		"":                                "",
		"+ curl -u admin:s3cret\nfailed":  "",
		"claim: no such type":             "no such type",
		"noise\n  claim:   a \nclaim: b":  "a b",
		"xclaim: no\nclaim:no\nCLAIM: no": "",
		"claim: \n":                       "",
	} {
		if got := contract.ForClaim(said); got != want {
			t.Errorf("ForClaim(%q) = %q, want %q", said, got, want)
		}
	}
}
