// Package writes keeps what the dispatcher has written a moment ago, so that nothing is decided on caches that do not show it yet. It reads and
// writes nothing itself.
package writes
