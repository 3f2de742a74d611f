package test

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	inlineLink    = regexp.MustCompile(`\]\(\s*<?([^)\s>]*)>?[^)]*\)`)
	referenceLink = regexp.MustCompile(`(?m)^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)`)
	absolute      = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*:|//)`)
	codeSpan      = regexp.MustCompile("`[^`\n]*`")
	headingLine   = regexp.MustCompile(`(?m)^#{1,6} +(.*?)(?: +#+)? *$`)
	headingLink   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notInAnchors  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// withoutFences drops fenced blocks: a # in them is no heading, and nothing in them is a link.
func withoutFences(text string) string {
	var out strings.Builder
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence = trimmed[:3]
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// relativeLinks returns the targets of a page's links that name no other site.
func relativeLinks(text string) []string {
	text = withoutFences(text)
	var out []string
	for _, m := range referenceLink.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	for _, m := range inlineLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, "code"), -1) {
		out = append(out, m[1])
	}
	return slices.DeleteFunc(out, absolute.MatchString)
}

// anchors returns what a link to a heading of a page may name, by the rule of the hosting sites. Of
// two equal headings the second has a number.
func anchors(text string) []string {
	var out []string
	seen := map[string]int{}
	for _, m := range headingLine.FindAllStringSubmatch(withoutFences(text), -1) {
		plain := headingLink.ReplaceAllString(m[1], "$1")
		anchor := strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(plain), ""), " ", "-")
		if n := seen[anchor]; n > 0 {
			out = append(out, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			out = append(out, anchor)
		}
		seen[anchor]++
	}
	return out
}

// site is what a link may lead to: pages are the texts of Markdown files by path, and files has
// every path that a link may name, directories included.
type site struct {
	pages map[string]string
	files map[string]bool
	// anchors are those of the pages that were linked to.
	anchors map[string][]string
}

// broken returns why a page's link does not resolve, or "".
func (s site) broken(page, link string) string {
	name, anchor, hasAnchor := strings.Cut(link, "#")
	to := page
	if name != "" {
		to = path.Join(path.Dir(page), name)
	}
	if !s.files[to] {
		return to + " does not exist"
	}
	if !hasAnchor {
		return ""
	}
	text, isPage := s.pages[to]
	if !isPage {
		return to + " has no headings to link to"
	}
	if s.anchors[to] == nil {
		s.anchors[to] = anchors(text)
	}
	if !slices.Contains(s.anchors[to], anchor) {
		return fmt.Sprintf("%s has no heading for #%s", to, anchor)
	}
	return ""
}

// siteOf holds all tracked files.
func siteOf(t *testing.T) site {
	t.Helper()
	s := site{pages: map[string]string{}, files: map[string]bool{}, anchors: map[string][]string{}}
	for _, file := range tracked(t) {
		for at := file; at != "."; at = path.Dir(at) {
			s.files[at] = true
		}
		if strings.HasSuffix(file, ".md") {
			s.pages[file] = content(t, file)
		}
	}
	s.files["."] = true
	return s
}

// Each fact stands in one place, and the other pages link to it.
func TestLinksOfThePagesResolve(t *testing.T) {
	s := siteOf(t)
	links := 0
	for page, text := range s.pages {
		for _, link := range relativeLinks(text) {
			links++
			if why := s.broken(page, link); why != "" {
				t.Errorf("%s links to %s: %s", page, link, why)
			}
		}
	}
	if links == 0 {
		t.Error("no page has a relative link: the test does not see them")
	}
}

func TestBrokenLinksAreSeen(t *testing.T) {
	s := site{
		pages: map[string]string{
			"README.md": "# Read me\n", "docs/a.md": "# The `key` & Co.\n## Twice\n## Twice\n```\n# no heading\n```\n",
		},
		files:   map[string]bool{".": true, "README.md": true, "docs": true, "docs/a.md": true, "docs/run.sh": true},
		anchors: map[string][]string{},
	}
	for link, want := range map[string]string{
		"a.md": "", "a.md#the-key--co": "", "#twice-1": "", "../README.md#read-me": "", "..": "", "run.sh": "",
		"b.md": "docs/b.md does not exist", "#no-heading": "docs/a.md has no heading for #no-heading",
		"#twice-2": "docs/a.md has no heading for #twice-2", "run.sh#x": "docs/run.sh has no headings to link to",
		"../../x": "../x does not exist",
	} {
		if got := s.broken("docs/a.md", link); got != want {
			t.Errorf("the link %s is broken by %q, want %q", link, got, want)
		}
	}
}

func TestRelativeLinksAreFound(t *testing.T) {
	text := "[a](b.md) ![c](d.png \"title\") [`e`](f.md#g)\n[h]: i.md\n`[no](code.md)`\n```\n[no](fence.md)\n```\n[j](https://example.com/) [k](mailto:x@example.com)\n"
	if got, want := relativeLinks(text), []string{"i.md", "b.md", "d.png", "f.md#g"}; !slices.Equal(got, want) {
		t.Errorf("the relative links are %q, want %q", got, want)
	}
}
