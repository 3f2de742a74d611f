// Package patch writes a part of an object, as it was read, and finds what the API server's answer
// does not show of it: a mutating webhook or policy may change what is written.
package patch
