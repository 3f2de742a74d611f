package credentials

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/warnings.v0"
)

// withWarnings adds the warnings to an error, since what was not read may be why something is
// missing.
func withWarnings(err error, warnings []string) error {
	if err == nil || len(warnings) == 0 {
		return err
	}
	return fmt.Errorf("%w; warnings: %s", err, strings.Join(warnings, "; "))
}

// unread returns the warning for a key or a section that is not read.
func unread(origin, what, word string, known []string) string {
	warning := fmt.Sprintf("%s: %s is unknown, and is ignored", origin, what)
	if near := closest(word, known); near != "" {
		warning += fmt.Sprintf("; did you mean %q?", near)
	}
	return warning
}

// parserPlace matches the end of the parser's messages: the section, and where there is one, its
// name and a key.
var parserPlace = regexp.MustCompile(`(?s) at section "([^"]*)"(?:, subsection "(.*?)")?(?:, variable "([^"]*)")?$`)

// placeIn returns the place in an error of the parser.
func placeIn(err error) (section, sub, key string, ok bool) {
	found := parserPlace.FindStringSubmatch(err.Error())
	if found == nil {
		return "", "", "", false
	}
	return found[1], found[2], found[3], true
}

// parserLine matches the errors of the parser that name a line.
var parserLine = regexp.MustCompile(`^(\d+):\d+: (.*)`)

const noSection = `it is no section: write [Name] or [Name "name"]`

// parserTexts is what the parser's messages begin with, and what is said instead. Its own text may
// hold a value.
var parserTexts = []struct{ begins, says string }{
	{"string not terminated", "the value's closing quote is missing"},
	{"unknown escape sequence", `a backslash in a value is written as \\, in double quotes`},
	{"unquoted '\\' must", `a value with a backslash is written in double quotes, the backslash as \\`},
	{"expected right bracket", noSection},
	{"expected subsection name", noSection},
	{"expected section name", noSection},
	{"expected section header", "it belongs to no section: write [Global] above it"},
	{"", "it must be key = value, a section or a comment"},
}

// parserFault says where the file cannot be parsed.
func parserFault(err error) error {
	if section, sub, key, ok := placeIn(err); ok {
		return fmt.Errorf("key %q in %s must have a value, which must be true or false if the key is a switch", key, sectionOf(section, sub))
	}
	found := parserLine.FindStringSubmatch(err.Error())
	if found == nil {
		return errors.New("it cannot be parsed")
	}
	i := slices.IndexFunc(parserTexts, func(t struct{ begins, says string }) bool { return strings.HasPrefix(found[2], t.begins) })
	return fmt.Errorf("line %s: %s", found[1], parserTexts[i].says)
}

// parserWarnings returns a warning for each key and section of the file that is not read.
func parserWarnings(origin string, data []byte, err error) []string {
	var out []string
	for _, one := range warnings.WarningsOnly(err) {
		section, sub, key, ok := placeIn(one)
		if !ok {
			continue
		}
		warning := sectionWarning(origin, section, sub, key, shownKey(key, isAssigned(data, key)))
		if warning != "" && !slices.Contains(out, warning) {
			out = append(out, warning)
		}
	}
	return out
}

// isAssigned reports whether a line of the file gives the key a value. Equals signs alone are none:
// Base64 ends with them.
func isAssigned(data []byte, key string) bool {
	return regexp.MustCompile(`(?mi)^[ \t]*` + regexp.QuoteMeta(key) + `[ \t]*=[ \t]*[^\s=]`).Match(data)
}

// shownKey returns how a warning shows a key. One without a value is not shown: it may be a part of
// a value, such as the end of a password whose line was broken.
func shownKey(key string, hasValue bool) string {
	if !hasValue {
		return "a key without a value"
	}
	return fmt.Sprintf("key %q", key)
}

// Sections and keys that only the cloud provider and its other programs read. The same file serves
// all of them.
var (
	providersSections = []string{"loadbalancer", "loadbalancerclass", "networking", "metadata", "route", "keymanager"}
	providersStorage  = []string{
		"bs-version", "trust-device-path", "ignore-volume-az", "ignore-volume-microversion", "node-volume-attach-limit",
		"rescan-on-resize",
	}
)

func sectionWarning(origin, section, sub, key, shown string) string {
	word := strings.ToLower(section)
	switch {
	case slices.Contains(providersSections, word), slices.Contains(providersStorage, strings.ToLower(key)):
		return ""
	case key == "":
		return unread(origin, "section "+sectionOf(section, sub), word, append([]string{"global", "blockstorage", "cinder"}, providersSections...))
	case word == "global":
		// The cloud provider says tenant where other programs say project.
		near := strings.Replace(strings.ToLower(key), "project", "tenant", 1)
		return unread(origin, shown+" in "+sectionOf(section, sub), near, globalKeys())
	default:
		return unread(origin, shown+" in "+sectionOf(section, sub), key, append([]string{"endpoint"}, providersStorage...))
	}
}

// globalKeys returns what [Global] may hold.
func globalKeys() []string {
	var out []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[form]()) {
		if key := field.Tag.Get("gcfg"); key != "" && key != "-" {
			out = append(out, key)
		}
	}
	return out
}

// closest returns the word that is nearest to what was written, or "" if none is near.
func closest(written string, words []string) string {
	best, most := "", 1+len(written)/4
	for _, word := range words {
		if d := distance(written, word); d <= most && (best == "" || d < distance(written, best)) {
			best = word
		}
	}
	return best
}

// distance counts the letters to insert, delete or replace to make one word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
