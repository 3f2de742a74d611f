// Package series holds the dispatcher's Prometheus series, their labels and the values of these. docs/configuration.md lists them, and a
// test compares the two. It reads no cluster: whoever counts hands it the figures. Start reading at Series.
package series
