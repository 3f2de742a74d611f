package cindertest

import (
	"os"
	"strings"
	"testing"
)

// ReadOpenrc returns the variables of a file by which tests reach a real Cinder.
func ReadOpenrc(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "="); ok {
			env[name] = strings.Trim(value, `"'`)
		}
	}
	return env
}
