// Package series holds the dispatcher's Prometheus series, their labels and the values of the
// labels. docs/configuration.md lists them, and a test compares the two. It reads no objects: the
// controller and act count for it. Start reading at Series.
package series
