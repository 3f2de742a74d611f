package credentials

import "log/slog"

// redacted is printed in place of a Secret.
const redacted = "[redacted]"

// Secret is a password or the like. No way of printing it shows its text, so that neither a log
// line nor an error can leak it. Reveal is the only way to read it.
type Secret string

// UnmarshalText reads the text.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = Secret(text)
	return nil
}

// Reveal returns the text, for the one place that sends it.
func (s Secret) Reveal() string { return string(s) }

// String hides the text from %s and %v.
func (s Secret) String() string { return redacted }

// GoString hides the text from %#v.
func (s Secret) GoString() string { return redacted }

// LogValue hides the text from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the text from JSON and YAML, as a value and as a map's key.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
