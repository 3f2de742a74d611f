package conform

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// secretKey matches the name of a key whose value is a credential. Other values of a Secret, such
	// as a URL, may be in a message.
	secretKey = regexp.MustCompile(`(?i)pass|secret|token|key|credential|authorization`)
	// assigned matches "key = value" and "key: value" in a file, and a header of HTTP with a login.
	assigned = regexp.MustCompile(`(?m)^[ \t]*["']?([\w.-]+)["']?[ \t]*[:=][ \t]*(?:(?:Bearer|Basic) )?["']?([^"'\s]+)`)
)

// shortest is the length of the shortest credential that is looked for: a shorter text may be in any
// message.
const shortest = 8

// credentials returns the credentials in the data of a Secret. Each line of a private key is one.
func credentials(data map[string][]byte) (out []string) {
	for key, value := range data {
		out = append(out, valuesOf(key, string(value))...)
		if block, _ := pem.Decode(value); block != nil && strings.HasSuffix(block.Type, "PRIVATE KEY") {
			for line := range strings.Lines(string(value)) {
				if !strings.HasPrefix(line, "-----") { // which all keys have
					out = append(out, valuesOf(block.Type, line)...)
				}
			}
		}
		for _, m := range assigned.FindAllStringSubmatch(string(value), -1) {
			out = append(out, valuesOf(m[1], m[2])...)
		}
	}
	return out
}

// valuesOf returns the credential that is the value of a key, if it is one, and what it decodes to.
func valuesOf(key, value string) []string {
	value = strings.TrimSpace(value)
	if !secretKey.MatchString(key) || len(value) < shortest || strings.Contains(value, "\n") {
		return nil
	}
	out := []string{value}
	if user, password, ok := basic(value); ok {
		out = append(out, user+":"+password, password)
	}
	return out
}

// basic returns the user and the password of a login of HTTP, which a header has in base64.
func basic(value string) (user, password string, is bool) {
	text, err := base64.StdEncoding.DecodeString(value)
	user, password, is = strings.Cut(string(text), ":")
	return user, password, err == nil && is && len(password) >= shortest && utf8.Valid(text)
}

// keepSecrets keeps the credentials of a Secret.
func (r *Run) keepSecrets(name string, data map[string][]byte) {
	for _, value := range credentials(data) {
		r.secrets[value] = name
	}
}

// show keeps what a claim's user sees of an object.
func (r *Run) show(where string, what any) {
	if text, err := json.Marshal(what); err == nil {
		r.shown[where] += string(text)
	}
}

// testQuiet looks for credentials in what the users of this run's claims see.
func testQuiet(ctx context.Context, t *trial) error {
	for _, name := range []string{t.Config.EnvSecret, t.Config.FilesSecret} {
		if name == "" {
			continue
		}
		secret, err := t.Client.CoreV1().Secrets(t.Config.Source.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("get the Secret %s of the config: %w", name, err)
		}
		t.keepSecrets(name, secret.Data)
	}
	if len(t.secrets) == 0 {
		return notClaimed(fmt.Sprintf("no Secret of the class has a credential that could be looked for: one of at least %d characters, under a key or a name such as password, token or key", shortest))
	}
	events, err := t.Client.CoreV1().Events(t.namespace.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the events of the claims: %w", err)
	}
	for _, event := range events.Items {
		t.show("an event of the claim "+event.InvolvedObject.Name, event.Message)
	}
	if len(t.shown) == 0 {
		return notTested("no claim was created before: test it with other promises")
	}
	t.note = fmt.Sprintf("%d credentials are in none of %d texts", len(t.secrets), len(t.shown))
	return leaked(t.secrets, t.shown)
}

// leaked returns an error if a text has one of the credentials.
func leaked(secrets, shown map[string]string) error {
	for _, where := range slices.Sorted(maps.Keys(shown)) {
		for value, name := range secrets {
			quoted, err := json.Marshal(value)
			if err == nil && strings.Contains(shown[where], strings.Trim(string(quoted), `"`)) {
				return broken("%s has a credential of the Secret %s", where, name)
			}
		}
	}
	return nil
}
