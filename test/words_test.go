package test

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// forbidden are the words that may not come back, each with what to write instead. A pattern is matched without regard to
// case and at word boundaries; its spaces match line breaks and comment signs too. Of Go files only comments and
// identifiers are read, the latter split at capitals: releaseHold is "release hold".
var forbidden = []struct{ pattern, instead string }{
	{`tells? (whether|that|why|what|which|how|of|if|when|where|who)`, "reports whether, returns, says"},
	{`(is|are|was|were|be|been|being) told`, "is reported, an event says"},
	{`lookers?`, "live reader, lister"},
	{`audiences?`, "event target"},
	{`mend(s|ed|ing)?`, "fix, correct"},
	{`(let|lets|letting) go`, "release, remove the finalizer, abandon"},
	{`(go|goes|going) around`, "bypass, read past"},
	{`unholds?`, "remove the finalizer"},
	{`strays?`, "rival PV"},
	{`unfit`, "mismatch, does not fit"},
	{`loose`, "never bound"},
	{`weather`, "transient error"},
	{`(in|of|out of) (its |their |the )?line`, "waiting for a slot"},
	{`lanes?`, "flow"},
	{`(a|its|their|his|whose|each|no|another) turns?`, "slot"},
	{`(take|takes|taking|took) turns`, "share slots fairly, alternate"},
	{`(wake|wakes|waking|woke|woken)`, "enqueue"},
	{`(has|have|had|is|are|was|were) (all |not |since )?gone`, "no longer exists, was deleted, has ended"},
	{`nobody|somebody|everybody`, "the subject: the controller, the user, no pod, another client"},
	{`(he|him|his|himself)`, "it, for a program; they, for a person"},
	{`(un)?settl(e|es|ed|ing)`, "record the outcome"},
	{`withdr(aw|aws|awn|awing|awal|ew)`, "delete the unbound PV"},
	{`(a hand|hands) for|has no hands|others' hands|dispatcher's hands`, "who does what"},
	{`company`, "the other requests of the batch"},
	{`neighbou?rs?`, "the other requests, the other pods"},
	{`strangers?`, "an object that is not ours"},
	{`(hurry|hurries|hurried)`, "shorten"},
	{`remember(s|ed)?`, "record, keep"},
	{`\w+['’]s word|(own|present|last|no) word`, "what it says: value, status, report"},
	{`leads? (nowhere|somewhere)`, "resolves"},
	{`wants? to (know|move)`, "is enqueued, is updated"},
	{`(give|gives|gave|given|giving) (it |them )?back`, "release, return"},
	{`cop(y|ies|ied|ying) (of )?(a|another|the) (claim|volume)s?|copied claims?`, "clone"},
	{`(claims?|volumes?) (that (is|are)|to be|is|are) copied`, "clone"},
}

// visible are names of the API that users see. They stay, though they are made of such words.
var visible = strings.NewReplacer("VolumeWithdrawn", " ", "NodeGone", " ", "node-gone", " ")

// anyForbidden finds all patterns in one pass, since there are many of them and much text.
func anyForbidden() *regexp.Regexp {
	var patterns []string
	for _, word := range forbidden {
		patterns = append(patterns, "("+spaced(word.pattern)+")")
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(patterns, "|") + `)\b`)
}

// spaced lets the spaces of a pattern match line breaks and comment signs, and makes its groups cost nothing.
func spaced(pattern string) string {
	return strings.ReplaceAll(strings.ReplaceAll(pattern, "(", "(?:"), " ", `[\s#>]+`)
}

// finding is one place of a word.
type finding struct {
	line          int
	text, instead string
}

// find returns where a text has forbidden words.
func find(words *regexp.Regexp, text string) []finding {
	var out []finding
	for _, at := range words.FindAllStringSubmatchIndex(text, -1) {
		said := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
		for i, word := range forbidden {
			if at[2+2*i] >= 0 {
				out = append(out, finding{1 + strings.Count(text[:at[0]], "\n"), said, word.instead})
			}
		}
	}
	return out
}

// prose is what of a file is read: of Go the comments and identifiers on their lines, of others all.
func prose(path, text string) string {
	if strings.HasSuffix(path, ".go") {
		text = ofGo(path, text)
	}
	return visible.Replace(text)
}

// ofGo keeps comments and identifiers on the lines where they stand. A bar between identifiers keeps two of them from
// becoming a phrase.
func ofGo(path, text string) string {
	file := token.NewFileSet().AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	lines := make([]strings.Builder, strings.Count(text, "\n")+2)
	for {
		pos, kind, literal := s.Scan()
		line := file.Line(pos)
		switch kind {
		case token.EOF:
			var out strings.Builder
			for i := 1; i < len(lines); i++ {
				out.WriteString(lines[i].String() + "\n")
			}
			return out.String()
		case token.COMMENT:
			for i, part := range strings.Split(literal, "\n") {
				lines[line+i].WriteString(" " + strings.Trim(part, "/* \t"))
			}
		case token.IDENT:
			lines[line].WriteString("|" + splitName(visible.Replace(literal)) + "|")
		case token.SEMICOLON: // the end of a line is none of its words
		default:
			lines[line].WriteString("|")
		}
	}
}

// splitName splits an identifier at capitals and underscores: aPVByHand is "a PV By Hand".
func splitName(name string) string {
	runes := []rune(name)
	var out strings.Builder
	for i, r := range runes {
		startsWord := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if startsWord || r == '_' {
			out.WriteRune(' ')
		}
		if r != '_' {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// folder is the first part of a path. The root's own files are ".".
func folder(path string) string {
	first, _, inFolder := strings.Cut(filepath.ToSlash(path), "/")
	if !inFolder {
		return "."
	}
	return first
}

// The subtests are the folders: go test -tags words ./test -run Words/docs looks at one of them.
func TestForbiddenWordsStayAway(t *testing.T) {
	words := anyForbidden()
	byFolder := map[string][]string{}
	for _, path := range tracked(t, ".go", ".md", ".yaml", ".yml", ".sh") {
		byFolder[folder(path)] = append(byFolder[folder(path)], path)
	}
	for name, paths := range byFolder {
		t.Run(name, func(t *testing.T) {
			for _, path := range paths {
				for _, f := range find(words, prose(path, content(t, path))) {
					t.Errorf("%s:%d: %q: write instead: %s", path, f.line, f.text, f.instead)
				}
			}
		})
	}
}

func TestForbiddenWordsAreSeen(t *testing.T) {
	words := anyForbidden()
	const code = `package a
// isFree tells
// whether a slot is free.
func isFree() string {
	letGo, in, line := "a string may say nobody", 1, 2 // reasonVolumeWithdrawn
	return letGo
}
`
	for _, tt := range []struct {
		path, text string
		want       map[int]string
	}{
		{"a.go", code, map[int]string{2: "tells whether", 5: "let Go", 6: "let Go"}},
		{"a.md", "A node that has\ngone: `node-gone`. Correct the config.\n", map[int]string{1: "has gone"}},
		{"a.sh", "# the config is\n# mended\n", map[int]string{2: "mended"}},
		{"a.yaml", "# the kubelet's word\nname: recommended\n", map[int]string{1: "kubelet's word"}},
	} {
		got := map[int]string{}
		for _, f := range find(words, prose(tt.path, tt.text)) {
			got[f.line] = f.text
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: found %v, want %v", tt.path, got, tt.want)
		}
		for line, text := range tt.want {
			if got[line] != text {
				t.Errorf("%s:%d: found %q, want %q", tt.path, line, got[line], text)
			}
		}
	}
}
