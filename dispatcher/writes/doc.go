// Package writes keeps what the dispatcher has written until its caches show it. It reads and writes nothing itself.
package writes
