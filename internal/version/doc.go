// Package version says which build of a program runs: for --version and for the first line of its
// log.
package version
