package logsink

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"k8s.io/klog/v2"
)

// Verbosities: lines are kept up to one, and counted up to the other. client-go's details are
// beyond both.
const (
	keptVerbosity    = 1
	countedVerbosity = 2
)

// Log keeps what is logged.
type Log struct {
	mu     sync.Mutex
	lines  []line
	counts map[string]int64 // by message, and by action
}

type line struct {
	message string
	pairs   []any
}

// New returns a Log that is empty.
func New() *Log { return &Log{counts: map[string]int64{}} }

// Of returns the Log that a sink is.
func Of(sink klog.LogSink) *Log { return sink.(*Log) }

// Count returns how often a message was logged.
func (l *Log) Count(message string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[message]
}

// Counts returns how often each message was logged, and each action was carried out as "action
// decide.Launch".
func (l *Log) Counts() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.counts)
}

// Lines returns the lines that begin with a word, as they would stand in a log of text.
func (l *Log) Lines(word string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, line := range l.lines {
		if text := line.String(); strings.HasPrefix(text, word+" ") {
			out = append(out, text)
		}
	}
	return out
}

func (l line) String() string {
	var text strings.Builder
	text.WriteString(l.message)
	for i := 0; i+1 < len(l.pairs); i += 2 {
		fmt.Fprintf(&text, " %v=%v", l.pairs[i], l.pairs[i+1])
	}
	return text.String()
}

// Init is part of klog.LogSink.
func (*Log) Init(klog.RuntimeInfo) {}

// Enabled reports whether lines of a level are counted.
func (*Log) Enabled(level int) bool { return level <= countedVerbosity }

// Info counts a line, and keeps it if its level is low enough.
func (l *Log) Info(level int, message string, pairs ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[message]++
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == "action" {
			l.counts[fmt.Sprint("action ", pairs[i+1])]++
		}
	}
	if level <= keptVerbosity {
		l.lines = append(l.lines, line{message, pairs})
	}
}

// Error counts a line.
func (l *Log) Error(_ error, message string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[message]++
}

// WithValues changes nothing.
func (l *Log) WithValues(...any) klog.LogSink { return l }

// WithName changes nothing.
func (l *Log) WithName(string) klog.LogSink { return l }
