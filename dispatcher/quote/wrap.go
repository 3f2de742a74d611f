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

// glue stands for the blanks in a command. Line leaves none.
const glue = "\x00"

// narrowest is the least width that a line has.
const narrowest = 20

// Wrap returns the lines of a text, each as Line does, and broken at blanks so that it has at most so
// many columns. A command is broken only if it is longer: at blanks, with a backslash before each, so
// that a shell reads one line. A longer word is broken only outside of a command, where the rest would
// be a word of its own.
func Wrap(text string, width int) (out []string) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		out = append(out, wrap(Line(line), max(width, narrowest))...)
	}
	return out
}

func wrap(line string, width int) []string {
	line = copied.ReplaceAllStringFunc(line, func(command string) string {
		return strings.ReplaceAll(strings.TrimSpace(command), " ", glue) + " "
	})
	var lines []string
	for word := range strings.SplitSeq(strings.TrimSpace(line), " ") {
		last := len(lines) - 1
		if last >= 0 && fits(lines[last]+" "+word, width) {
			lines[last] += " " + word
		} else {
			lines = append(lines, parts(word, width)...)
		}
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], glue, " ")
	}
	return lines
}

// parts returns a word or a command in as many parts as it needs. A terminal would break it at its
// left edge, where the rest of what others have written looks like a line of the command's own.
func parts(text string, width int) (out []string) {
	isCommand := strings.Contains(text, glue)
	for !fits(text, width) {
		part := beginning(text, width-1)
		rest, end := text[len(part):], "\\"
		if isCommand {
			i := strings.LastIndex(part, glue)
			if i < 0 {
				i = strings.Index(text, glue) // its first word is as long
			}
			if i < 0 {
				break
			}
			part, rest, end = text[:i], text[i+len(glue):], " \\"
		}
		out, text = append(out, part+end), rest
	}
	return append(out, text)
}

// fits reports whether a text has at most so many columns.
func fits(text string, width int) bool { return beginning(text, width) == text }

// beginning returns as much of a text as has at most so many columns. What is not ASCII counts as
// two: a terminal shows Chinese so wide.
func beginning(text string, width int) string {
	for i, r := range text {
		if width--; r >= utf8.RuneSelf {
			width--
		}
		if width < 0 {
			return text[:i]
		}
	}
	return text
}

// Indent returns a text as it stands after so many columns of a command's own. Each further line
// begins below the first: so many blanks that the rest begins at the left edge of a terminal once
// showed another remedy there (TestBlanksBringNoTextOfOthersToTheLeftEdge).
func Indent(text string, columns int) string {
	return strings.Join(Wrap(text, Columns-columns), "\n"+strings.Repeat(" ", columns))
}
