package quote

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var (
	// shown has no blank, no quote and no character that a shell or a terminal reads as more than
	// itself.
	shown = regexp.MustCompile(`^[!#%()*+,./0-9:=?@A-Z\[\]^_a-z{}~-]+$`)
	// bare is what a shell takes as one word that is only itself.
	bare = regexp.MustCompile(`^[0-9A-Za-z_./:=@%+,-]+$`)
	// printed is ASCII that a terminal shows as it is.
	printed = regexp.MustCompile(`^[ -~]*$`)
)

// Name returns a name as it may stand in a sentence: as it is, or else quoted, in ASCII.
func Name(name string) string {
	if shown.MatchString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// Line returns a text of several words as a part of one line: line breaks become blanks, and what a
// terminal would not show is left out.
func Line(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.Join(strings.Fields(text), " "))
}

// Error returns the text of an error, as a command prints it after "error: ". It may repeat what others
// have written: each further line is indented, so that none of it looks like the command's own.
func Error(err error) string {
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		lines = append(lines, Line(line))
	}
	return strings.Join(lines, "\n       ")
}

// Lines returns a text of several lines without what a terminal would not show as it is.
func Lines(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r), r == '\n':
			return r
		case unicode.IsSpace(r):
			return ' '
		default:
			return -1
		}
	}, text)
}

// ControlIn returns a text in a value, which was read from JSON, that has control characters, and
// false if none has.
func ControlIn(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, strings.ContainsFunc(v, unicode.IsControl)
	case []any:
		for _, one := range v {
			if text, found := ControlIn(one); found {
				return text, true
			}
		}
	case map[string]any:
		for name, one := range v {
			if text, found := ControlIn([]any{name, one}); found {
				return text, true
			}
		}
	}
	return "", false
}

// Command returns a command that a shell runs with exactly these arguments.
func Command(args ...string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = word(arg)
	}
	return strings.Join(words, " ")
}

// word returns an argument as a word of a shell. In $'…' bash, zsh and POSIX since 2024 read
// escapes; an older shell reads another text, and still one word.
func word(arg string) string {
	switch {
	case bare.MatchString(arg):
		return arg
	case printed.MatchString(arg):
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	var out strings.Builder
	for _, b := range []byte(arg) {
		switch {
		case b == '\'' || b == '\\':
			out.WriteString(`\` + string(rune(b)))
		case b < ' ' || b > '~':
			fmt.Fprintf(&out, `\%03o`, b)
		default:
			out.WriteByte(b)
		}
	}
	return "$'" + out.String() + "'"
}
