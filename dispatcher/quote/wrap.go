package quote

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Columns is how wide a line for people may be. A terminal breaks a longer one inside a word.
const Columns = 100

// copied is a command of kubectl in a sentence, to where the part of the sentence ends. Half of a
// command, pasted, would run.
var copied = regexp.MustCompile(`kubectl (?:\S+ )*?\S+(?:[.,:;] |$)`)

// Wrap returns the lines of a text, each as Line does, and broken at blanks so that it has at most so
// many columns. A word or a command that is longer has a line of its own.
func Wrap(text string, width int) (out []string) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		out = append(out, wrap(Line(line), width)...)
	}
	return out
}

func wrap(line string, width int) []string {
	const glue = "\x00" // Line leaves none
	line = copied.ReplaceAllStringFunc(line, func(command string) string {
		return strings.ReplaceAll(strings.TrimSpace(command), " ", glue) + " "
	})
	var lines []string
	for word := range strings.SplitSeq(strings.TrimSpace(line), " ") {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], glue, " ")
	}
	return lines
}

// Indent returns a text as it stands after so many columns of a command's own. Each further line
// begins below the first: so many blanks that the rest begins at the left edge of a terminal once
// showed another remedy there (TestBlanksBringNoTextOfOthersToTheLeftEdge).
func Indent(text string, columns int) string {
	return strings.Join(Wrap(text, Columns-columns), "\n"+strings.Repeat(" ", columns))
}
