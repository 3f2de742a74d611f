package credentials

import (
	"fmt"
	"strings"
)

// entry is one "key = value" of a file, with section and key in lower case.
type entry struct {
	section, key, value string
	line                int
}

// parseINI reads the dialect of the cloud provider's files: sections, "key = value", comments that
// begin with ; or #, and values in double quotes where they hold one of these.
func parseINI(data []byte) ([]entry, error) {
	var entries []entry
	section, line := "", 0
	for text := range strings.Lines(string(data)) {
		line++
		text = strings.TrimSpace(text)
		switch {
		case text == "" || text[0] == ';' || text[0] == '#':
		case text[0] == '[':
			name, ok := sectionName(text)
			if !ok {
				return nil, fmt.Errorf("line %d is no section: write [Name]", line)
			}
			section = name
		default:
			key, value, err := keyValue(text)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			entries = append(entries, entry{section, key, value, line})
		}
	}
	return entries, nil
}

func sectionName(text string) (string, bool) {
	name, rest, ok := strings.Cut(text[1:], "]")
	if rest = strings.TrimSpace(rest); rest != "" && rest[0] != ';' && rest[0] != '#' {
		return "", false
	}
	return strings.ToLower(strings.TrimSpace(name)), ok
}

func keyValue(text string) (key, value string, err error) {
	key, raw, ok := strings.Cut(text, "=")
	if !ok {
		return "", "", fmt.Errorf("no key = value")
	}
	value, err = unquote(strings.TrimSpace(raw))
	return strings.ToLower(strings.TrimSpace(key)), value, err
}

// unquote returns a plain value up to a comment, and a quoted one up to its closing quote. In quotes \" and \\ stand
// for themselves.
func unquote(raw string) (string, error) {
	if !strings.HasPrefix(raw, `"`) {
		if i := strings.IndexAny(raw, ";#"); i >= 0 {
			raw = raw[:i]
		}
		return strings.TrimSpace(raw), nil
	}
	var value strings.Builder
	for i := 1; i < len(raw); i++ {
		switch {
		case raw[i] == '"':
			return value.String(), nil
		case raw[i] == '\\' && i+1 < len(raw):
			i++
		}
		value.WriteByte(raw[i])
	}
	return "", fmt.Errorf("the value's closing quote is missing")
}
