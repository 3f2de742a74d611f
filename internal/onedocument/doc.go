// Package onedocument parses YAML of one document. The decoders that take a text as a whole read
// the first document, and are silent about all others.
package onedocument
