package fakecluster

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"
)

// reconcileMessage is what a dispatcher logs each time that it looks at a claim.
const reconcileMessage = "next"

// verbosity is the level up to which lines are kept: the dispatcher's own, not client-go's details.
const verbosity = 2

// Log keeps what dispatchers log, and counts how often they look at a claim.
type Log struct {
	reconciles *atomic.Int64
	mu         sync.Mutex
	lines      []line
}

type line struct {
	message string
	pairs   []any
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
	text := l.message
	for i := 0; i+1 < len(l.pairs); i += 2 {
		text += fmt.Sprintf(" %v=%v", l.pairs[i], l.pairs[i+1])
	}
	return text
}

// Init is part of klog.LogSink.
func (*Log) Init(klog.RuntimeInfo) {}

// Enabled reports whether lines of a level are kept.
func (*Log) Enabled(level int) bool { return level <= verbosity }

// Info keeps a line.
func (l *Log) Info(_ int, message string, pairs ...any) {
	if message == reconcileMessage {
		l.reconciles.Add(1)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line{message, pairs})
}

// Error keeps nothing.
func (*Log) Error(error, string, ...any) {}

// WithValues changes nothing.
func (l *Log) WithValues(...any) klog.LogSink { return l }

// WithName changes nothing.
func (l *Log) WithName(string) klog.LogSink { return l }
