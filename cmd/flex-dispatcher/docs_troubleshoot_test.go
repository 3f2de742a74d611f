package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// The page of people at a terminal has a heading for each reason, and each says what to do by a command.
func TestEachReasonHasAHeadingWithItsRemedy(t *testing.T) {
	reasons := readSource(t).reasons()
	known := from("reason.Headings", reason.Headings()...)
	for why, place := range reasons {
		if known[why] == "" {
			t.Errorf("reason.Headings lacks %s (%s): kubectl flex why would not name its heading", why, place)
		}
	}
	sections := sectionsOf(pageText(t, troubleshootPage))
	for why := range known {
		text, has := sections[why]
		if !has {
			t.Errorf("%s has no heading of %s", troubleshootPage, why)
			continue
		}
		for _, part := range []string{"Cause", "emedy", "\nkubectl "} {
			if !strings.Contains(text, part) {
				t.Errorf("%s, ## %s: lacks %q", troubleshootPage, why, strings.TrimSpace(part))
			}
		}
		if link := reason.Page(why); link != troubleshootPage+"#"+strings.ToLower(why) {
			t.Errorf("the link to %s is %q", why, link)
		}
	}
	for heading := range sections {
		if known[heading] == "" && !strings.Contains(heading, " ") {
			t.Errorf("%s has the heading %s, which is no reason: remove it, or add it to reason.Headings", troubleshootPage, heading)
		}
	}
	for _, row := range tableOf(t, configurationPage, "reason").rows {
		if why := spans(row[0])[0]; row[0] != "[`"+why+"`](troubleshoot.md#"+strings.ToLower(why)+")" {
			t.Errorf("%s, table | reason |: %s does not link to its heading", configurationPage, row[0])
		}
	}
}

// sectionsOf returns the text below each heading of the second level of a page.
func sectionsOf(page string) map[string]string {
	out := map[string]string{}
	for _, section := range strings.Split(page, "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		out[heading] = text
	}
	return out
}

// What people copy is a command of kubectl, or stands in a block of its own.
func TestCommandsOfTroubleshootingCanBeCopied(t *testing.T) {
	blocks := strings.Split(pageText(t, troubleshootPage), "```")
	if len(blocks)%2 == 0 {
		t.Fatal("a block does not end")
	}
	keyWithValue := regexp.MustCompile(`^[\w./-]+: \S+$`)
	for i := 0; i < len(blocks); i += 2 {
		for _, span := range spans(blocks[i]) {
			if strings.Contains(span, " ") && !strings.HasPrefix(span, "kubectl ") && !keyWithValue.MatchString(span) {
				t.Errorf("%s: `%s` is no command of kubectl: put it into a block", troubleshootPage, span)
			}
		}
	}
}
