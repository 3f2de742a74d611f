package test

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// forbidden are the words that may not come back, each with what to write instead. A pattern is
// matched without regard to case and at word boundaries; its spaces match line breaks and comment
// signs too. Of Go files comments and identifiers are read, the latter split at capitals
// (releaseHold is "release hold"), and the texts of those that are no tests.
var forbidden = []word{
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

// unclear are the phrases that a reader has to read twice. They may not come back into what users
// read: pages, manifests, scripts, and the texts of Go files that are no tests.
var unclear = []word{
	{`(does|do) not exist any more`, "no longer exists"},
	{`stands? for nothing`, "orphaned"},
	{`(is|are) none of|that (is|are) none`, "must be one of, is not"},
	{`what is (read|asked|written|said)`, "the noun"},
	{`of which`, "a sentence of its own"},
	{`nor (do|does|is|are|can|may|where|for)`, "a whole sentence, with its subject"},
	{`(is|are|was|were) asked for`, "the claim requests"},
	{`(take|takes|taking|taken) (it|them|labels?|the finalizers?) off`, "remove"},
	{`(take|takes|taken) back`, "delete, cancel"},
	{`deleted? (the pod )?by force`, "force-deleted"},
	{`all the same`, "still"},
	{`(go|goes|went) on`, "continue"},
	{`(look|looks|looked) (again|at)`, "check, get, reconcile"},
	{`(a|the|its|no|any) rivals?|rival PVs?`, "conflicting PV"},
}

// word is a pattern, and what to write instead.
type word struct{ pattern, instead string }

// visible are names of the API that users see. They stay, though they are made of such words.
var visible = strings.NewReplacer("VolumeWithdrawn", " ", "NodeGone", " ", "node-gone", " ")

// vocabulary are words that may not come back into a part of each file.
type vocabulary struct {
	words []word
	any   *regexp.Regexp                 // finds all in one pass, since there are many of them and much text; without groups, each of which costs time
	part  func(path, text string) string // keeps the lines
}

func vocabularies() []vocabulary {
	return []vocabulary{{forbidden, anyOf(forbidden), prose}, {unclear, anyOf(unclear), shown}}
}

func anyOf(words []word) *regexp.Regexp {
	var patterns []string
	for _, word := range words {
		patterns = append(patterns, spaced(word.pattern))
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(patterns, "|") + `)\b`)
}

// spaced lets the spaces of a pattern match line breaks and comment signs, and makes its groups
// cost nothing.
func spaced(pattern string) string {
	return strings.ReplaceAll(strings.ReplaceAll(pattern, "(", "(?:"), " ", `[\s#>]+`)
}

// finding is one place of a word.
type finding struct {
	line          int
	text, instead string
}

// find returns where a file has words of the vocabulary.
func (v vocabulary) find(path, content string) []finding {
	var out []finding
	text := v.part(path, content)
	for _, at := range v.any.FindAllStringIndex(text, -1) {
		found := text[at[0]:at[1]]
		word := v.words[slices.IndexFunc(v.words, func(w word) bool { return anyOf([]word{w}).FindString(found) == found })]
		out = append(out, finding{1 + strings.Count(text[:at[0]], "\n"), strings.Join(strings.Fields(found), " "), word.instead})
	}
	return out
}

// prose returns the words of a file, on their lines. Of a test in Go it leaves out the texts.
func prose(path, text string) string {
	if strings.HasSuffix(path, ".go") {
		text = ofGo(path, text, true, !isTest(path))
	}
	return visible.Replace(text)
}

// shown returns the words of a file that users read, on their lines: of Go the texts, of other
// files everything.
func shown(path, text string) string {
	switch {
	case isTest(path):
		return ""
	case strings.HasSuffix(path, ".go"):
		text = ofGo(path, text, false, true)
	}
	return visible.Replace(text)
}

func isTest(path string) bool { return folder(path) == "test" || strings.HasSuffix(path, "_test.go") }

// ofGo keeps the words of a Go file on their lines: those of the code, which are comments and
// identifiers, and the texts, joined where the code joins them. A bar keeps what stands side by
// side from becoming a phrase.
func ofGo(path, text string, code, texts bool) string {
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
		case token.STRING:
			for i, part := range strings.Split(literal, "\n") {
				if texts {
					lines[line+i].WriteString(strings.Trim(part, "\"`"))
				}
			}
		case token.COMMENT:
			for i, part := range strings.Split(literal, "\n") {
				if code {
					lines[line+i].WriteString(" " + strings.Trim(part, "/* \t"))
				}
			}
		case token.IDENT:
			lines[line].WriteString("|")
			if code {
				lines[line].WriteString(splitName(visible.Replace(literal)) + "|")
			}
		case token.ADD, token.SEMICOLON: // neither a joint nor the end of a line is one of its words
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
	all := vocabularies()
	byFolder := map[string][]string{}
	for _, path := range tracked(t, ".go", ".md", ".yaml", ".yml", ".sh") {
		byFolder[folder(path)] = append(byFolder[folder(path)], path)
	}
	for name, paths := range byFolder {
		t.Run(name, func(t *testing.T) {
			for _, path := range paths {
				for _, v := range all {
					for _, f := range v.find(path, content(t, path)) {
						t.Errorf("%s:%d: %q: write instead: %s", path, f.line, f.text, f.instead)
					}
				}
			}
		})
	}
}

func TestForbiddenWordsAreSeen(t *testing.T) {
	const code = `package a
// isFree tells
// whether a slot is free.
func isFree() string {
	in, line, text := 1, 2, "no" + "body" // reasonVolumeWithdrawn, which may go on
	return letGo + text + "the words of " +
		"which the user reads all"
}
`
	for _, tt := range []struct {
		path, text string
		want       map[int]string
	}{
		{"a.go", code, map[int]string{2: "tells whether", 5: "nobody", 6: "of which"}},
		{"a_test.go", code, map[int]string{2: "tells whether", 6: "let Go"}},
		{"a.md", "A node that has\ngone: `node-gone`. Correct the config.\n", map[int]string{1: "has gone"}},
		{"a.sh", "# the config is\n# mended\n", map[int]string{2: "mended"}},
		{"a.yaml", "# the kubelet's word\nname: recommended\n", map[int]string{1: "kubelet's word"}},
	} {
		got := map[int]string{}
		for _, v := range vocabularies() {
			for _, f := range v.find(tt.path, tt.text) {
				got[f.line] = f.text
			}
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
