package contract

import "strings"

// leastMessage is the length from which on a shortened message still says something.
const leastMessage = 48

// EncodeResults returns results as lines that fit into so many bytes. What the results need without
// their messages is always there, for up to MaxBatchOf requests; the messages have equal shares of
// the rest. The room of a whole termination message is MaxMessage-1: one of MaxMessage bytes would be
// taken for one that is cut off.
func EncodeResults(results []Result, room int) string {
	messages := 0
	for _, r := range results {
		if r.Message != "" {
			messages++
		}
		r.Message = ""
		room -= len(line(r))
	}
	var out strings.Builder
	for _, r := range results {
		out.WriteString(fitting(r, room/max(messages, 1)))
	}
	return out.String()
}

// fitting returns the result as a line that its message makes at most so much longer. In JSON some
// characters need more than one.
func fitting(r Result, room int) string {
	text := r.Message
	r.Message = ""
	bare := line(r)
	for limit := min(len(text), room); limit >= min(len(text), leastMessage) && limit > 0; limit = limit * 7 / 8 {
		r.Message = Shorten(text, limit)
		if long := line(r); len(long) <= len(bare)+room {
			return long
		}
	}
	return bare
}

// line returns the result as a line. A result that could not be written would have its request
// tried again alone.
func line(r Result) string {
	text, err := r.Encode()
	if err != nil {
		return ""
	}
	return text
}

// Shorten returns a text, or the beginning of one that is longer than limit bytes.
func Shorten(text string, limit int) string {
	const end = "…"
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:max(limit-len(end), 0)], "") + end
}
