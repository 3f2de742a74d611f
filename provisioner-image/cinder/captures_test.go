package cinder_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// captured is a request and its answer, as a real Cinder (Zed, noauth, tgt) gave it.
type captured struct {
	Name         string          `json:"name"`
	Method       string          `json:"method"`
	Path         string          `json:"path"`
	Microversion string          `json:"microversion"`
	Body         json.RawMessage `json:"body"`
	// Service is true if the client said that it is a service.
	Service bool `json:"service"`
	Status  int  `json:"status"`
	Answer  any  `json:"answer"`
}

// The captured requests are replayed to the fake in their order. Statuses are the same, and all
// fields and their values, but for those that differ from one Cinder to the next.
func TestFakeAnswersLikeRealCinder(t *testing.T) {
	server := cindertest.New()
	t.Cleanup(server.Close)
	names := map[string]string{"fast-1795151137": cindertest.TypePlain}
	replayed := 0
	for _, c := range readCaptures(t) {
		server.LetTimePass()
		status, answer := replay(t, server.Endpoint(), c, names)
		if status != c.Status {
			t.Fatalf("%s: status %d, captured %d", c.Name, status, c.Status)
		}
		learn(names, c.Answer, answer)
		if diff := unlike(c.Answer, answer, names, ""); diff != "" {
			t.Errorf("%s: %s", c.Name, diff)
		}
		replayed++
	}
	t.Logf("%d captured requests replayed", replayed)
	if replayed < 50 {
		t.Errorf("only %d captures were found", replayed)
	}
}

// readCaptures returns what was captured of a Cinder that no longer exists: passwords and tokens in
// it open nothing.
func readCaptures(t *testing.T) []captured {
	t.Helper()
	data, err := os.ReadFile("testdata/captures.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []captured
	for line := range bytes.Lines(data) {
		var c captured
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// replay sends the request with this run's IDs in place of the captured ones.
func replay(t *testing.T, endpoint string, c captured, names map[string]string) (int, any) {
	t.Helper()
	path, body := c.Path, string(c.Body)
	for old, now := range names {
		path, body = strings.ReplaceAll(path, old, now), strings.ReplaceAll(body, old, now)
	}
	request, err := http.NewRequestWithContext(t.Context(), c.Method, endpoint+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", "admin:00000000000000000000000000000001")
	request.Header.Set("Content-Type", "application/json") // else a real Cinder reads no body
	if c.Microversion != "" {
		request.Header.Set("OpenStack-API-Version", "volume "+c.Microversion)
	}
	if c.Service {
		request.Header.Set("X-Service-Roles", "service")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer any
	if len(text) > 0 && json.Unmarshal(text, &answer) != nil {
		answer = string(text) // as of a URL that an older Cinder does not know
	}
	return response.StatusCode, answer
}

// learn records which ID of the fake stands for which captured one.
func learn(names map[string]string, was, now any) {
	for _, object := range []string{"volume", "attachment"} {
		old, ok := at(was, object, "id").(string)
		if mine, also := at(now, object, "id").(string); ok && also {
			names[old] = mine
		}
	}
}

func at(value any, keys ...string) any {
	for _, key := range keys {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// varying are the fields whose values differ from one Cinder to the next. They have the captured
// type.
var varying = []string{
	"id", "attachment_id", "volume_id", "name", "created_at", "updated_at", "attached_at", "auth_username", "auth_password",
}

// notSent are the captured fields that the fake leaves out, as no client of ours reads them. Of a
// volume's metadata Cinder shows a key of its own once the volume was exported.
var notSent = []string{
	"links", "os-vol-tenant-attr:tenant_id", "os-vol-mig-status-attr:migstat", "os-vol-mig-status-attr:name_id",
	"os-vol-host-attr:host", "device", "readonly", "attached_mode", "attach_mode",
}

// unlike returns where the fake's answer differs.
func unlike(was, now any, names map[string]string, path string) string {
	switch mine := now.(type) {
	case map[string]any:
		return unlikeObject(was, mine, names, path)
	case []any:
		theirs, ok := was.([]any)
		if !ok || len(theirs) != len(mine) {
			return fmt.Sprintf("%s is %v, captured %v", path, now, was)
		}
		for i := range mine {
			if diff := unlike(theirs[i], mine[i], names, fmt.Sprintf("%s[%d]", path, i)); diff != "" {
				return diff
			}
		}
	default:
		text := fmt.Sprint(was)
		for from, to := range names {
			text = strings.ReplaceAll(text, from, to)
		}
		if text != fmt.Sprint(now) {
			return fmt.Sprintf("%s is %q, captured %q", path, fmt.Sprint(now), text)
		}
	}
	return ""
}

func unlikeObject(was any, mine map[string]any, names map[string]string, path string) string {
	theirs, ok := was.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s is %v, captured %v", path, mine, was)
	}
	for key, old := range theirs {
		value, isSent := mine[key]
		switch here := path + "." + key; {
		case slices.Contains(notSent, key):
		case !isSent:
			return here + " is missing"
		case slices.Contains(varying, key):
			if value != nil && old != nil && reflect.TypeOf(value) != reflect.TypeOf(old) {
				return fmt.Sprintf("%s is a %T, captured a %T", here, value, old)
			}
		default:
			if diff := unlike(old, value, names, here); diff != "" {
				return diff
			}
		}
	}
	for key := range mine {
		if _, ok := theirs[key]; !ok {
			return path + "." + key + " is no field of Cinder's"
		}
	}
	return ""
}
