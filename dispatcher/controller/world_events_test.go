package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// told is one event.
type told struct {
	at                 time.Time
	about, related     string // kind/name
	kind, reason, note string
}

// recorder keeps events.
type recorder struct {
	mu     sync.Mutex
	events []told
}

// Eventf keeps one event.
//
//nolint:revive // client-go's own arguments
func (r *recorder) Eventf(regarding, related runtime.Object, kind, reason, _, note string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, told{
		at: time.Now(), about: nameOf(regarding), related: nameOf(related), kind: kind, reason: reason, note: fmt.Sprintf(note, args...),
	})
}

// lookLog counts how often a dispatcher looks at a claim, by the line that it logs each time, and notes every other
// line.
type lookLog struct {
	looks *atomic.Int64
	lines *logLines
}

// logLines are what dispatchers log, as it would stand in a log of text.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) add(msg string, pairs []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := 0; i+1 < len(pairs); i += 2 {
		msg += fmt.Sprintf(" %v=%v", pairs[i], pairs[i+1])
	}
	l.lines = append(l.lines, msg)
}

// said are the lines that begin with a word.
func (l *logLines) said(word string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, line := range l.lines {
		if strings.HasPrefix(line, word+" ") {
			out = append(out, line)
		}
	}
	return out
}

// Init is klog's word for nothing.
func (lookLog) Init(klog.RuntimeInfo) {}

// Enabled tells that every line counts.
func (lookLog) Enabled(int) bool { return true }

// Info counts a line.
func (l lookLog) Info(_ int, msg string, pairs ...any) {
	if msg == "next" {
		l.looks.Add(1)
		return
	}
	l.lines.add(msg, pairs)
}

// Error is not counted.
func (lookLog) Error(error, string, ...any) {}

// WithValues changes nothing.
func (l lookLog) WithValues(...any) klog.LogSink { return l }

// WithName changes nothing.
func (l lookLog) WithName(string) klog.LogSink { return l }

// nameOf is "PersistentVolumeClaim/data".
func nameOf(obj runtime.Object) string {
	o, ok := obj.(object)
	if !ok {
		return ""
	}
	kind := fmt.Sprintf("%T", obj)
	return kind[strings.LastIndexByte(kind, '.')+1:] + "/" + o.GetName()
}

// said returns the events about an object with a reason; empty: any.
func (r *recorder) said(about, reason string) []told {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []told
	for _, e := range r.events {
		if (about == "" || e.about == about) && (reason == "" || e.reason == reason) {
			out = append(out, e)
		}
	}
	return out
}

// all are the events of a reason, about whatever.
func (r *recorder) all(reason string) []told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.events), func(e told) bool { return e.reason != reason })
}
