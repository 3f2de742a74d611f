// Package latency measures the dispatcher's own share of each run, by its own clock: from the moment at which its caches, a free slot or the end of a
// pause allow a write until the API server has answered it. No decision depends on it. Start reading at Tracker.
package latency
