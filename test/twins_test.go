package test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Of two pages that say the same, one is forgotten at the next change.
//
// A sentence is one of a page for users, or a cell of a table, outside of blocks, with eight words or
// more, links counted by their text. Two are near twins if they are on different pages, and of the
// words that either has, in any order, both have at least 60 %.
const (
	leastWords = 8
	nearTwin   = 0.6
	// mostTwins is how many sentences may have one. Lower it when you have merged some, and never
	// raise it: link to the page that has the fact.
	mostTwins = 30
)

var (
	linkText      = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	listItem      = regexp.MustCompile(`^(?:[*-]|\d+\.) `)
	betweenPhrase = regexp.MustCompile("[.!?:]\\s+[A-Z`*⚠]")
	oneWord       = regexp.MustCompile(`[a-z0-9][a-z0-9'’.-]*`)
)

// statement is a sentence of a page.
type statement struct {
	page, text string
	words      map[string]bool
}

// paragraphs returns the paragraphs, list items and cells of a page.
func paragraphs(text string) []string {
	var out []string
	open := false // whether the next line continues the last paragraph
	for line := range strings.Lines(withoutFences(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			open = false
			continue
		case strings.HasPrefix(line, "|"):
			out, open = append(out, strings.Split(strings.Trim(line, "|"), " | ")...), false
			continue
		case listItem.MatchString(line):
			line, open = listItem.ReplaceAllString(line, ""), false
		}
		if open {
			out[len(out)-1] += " " + line
		} else {
			out = append(out, line)
		}
		open = true
	}
	return out
}

// statements returns the sentences of a page that are long enough to be compared.
func statements(page, text string) []statement {
	var out []statement
	for _, paragraph := range paragraphs(text) {
		paragraph = linkText.ReplaceAllString(paragraph, "$1")
		begin := 0
		ends := betweenPhrase.FindAllStringIndex(paragraph, -1)
		for _, end := range append(ends, []int{len(paragraph) - 1}) {
			sentence := paragraph[begin : end[0]+1]
			begin = end[0] + 1
			words := oneWord.FindAllString(strings.ToLower(sentence), -1)
			if len(words) < leastWords {
				continue
			}
			s := statement{page, strings.TrimSpace(sentence), map[string]bool{}}
			for _, word := range words {
				s.words[strings.TrimRight(word, ".")] = true
			}
			out = append(out, s)
		}
	}
	return out
}

// isTwin reports whether two sentences say nearly the same on two pages.
func (s statement) isTwin(of statement) bool {
	few, many := len(s.words), len(of.words)
	if few > many {
		few, many = many, few
	}
	if s.page == of.page || float64(few) < nearTwin*float64(many) {
		return false
	}
	both := 0
	for word := range s.words {
		if of.words[word] {
			both++
		}
	}
	return float64(both) >= nearTwin*float64(few+many-both)
}

// twins returns the sentences that have one, each with the first of them.
func twins(all []statement) map[int]int {
	found := map[int]int{}
	for i, one := range all {
		for j := i + 1; j < len(all); j++ {
			if !one.isTwin(all[j]) {
				continue
			}
			for _, pair := range [][2]int{{i, j}, {j, i}} {
				if _, has := found[pair[0]]; !has {
					found[pair[0]] = pair[1]
				}
			}
		}
	}
	return found
}

// go test -v -run TwinOnAnotherPage ./test lists them.
func TestFewSentencesHaveATwinOnAnotherPage(t *testing.T) {
	var all []statement
	for _, page := range tracked(t, ".md") {
		if page == "README.md" || strings.HasPrefix(page, "docs/") || page == "deploy/chart/README.md" {
			all = append(all, statements(page, content(t, page))...)
		}
	}
	found := twins(all)
	for i, j := range found {
		if i < j {
			t.Logf("%s: %s\n%s: %s", all[i].page, all[i].text, all[j].page, all[j].text)
		}
	}
	t.Logf("of %d sentences %d have a near twin on another page", len(all), len(found))
	if len(all) < 1000 {
		t.Error("the test does not see the sentences")
	}
	if len(found) > mostTwins {
		t.Errorf("%d sentences have a near twin on another page, and at most %d may", len(found), mostTwins)
	}
}

func TestTwinsAreSeen(t *testing.T) {
	const fact = "A volume is lost with its node, and nothing brings it back. "
	all := slices.Concat(
		statements("a.md", fact+"Short it is.\n\n```\n"+fact+"\n```\n"),
		statements("b.md", "* One.\n* a volume is [lost](x.md) with its\n  node, and nothing ever brings it back\n"),
		statements("c.md", "| x | A volume that is lost was on another node, which has no clone of it |\n"),
		statements("a.md", fact),
	)
	got := fmt.Sprint(twins(all))
	if want := "map[0:1 1:0 3:1]"; len(all) != 4 || got != want {
		t.Errorf("of %d sentences the twins are %s, want %s", len(all), got, want)
	}
}
