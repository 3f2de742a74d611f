package cinder_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/cindertest"
)

// captured is a request and its answer, as a real Cinder (Zed, noauth, tgt) gave it.
type captured struct {
	Name         string          `json:"name"`
	Method       string          `json:"method"`
	Path         string          `json:"path"`
	Microversion string          `json:"microversion"`
	Body         json.RawMessage `json:"body"`
	Status       int             `json:"status"`
	Answer       any             `json:"answer"`
}

// The captured requests are replayed to the fake in their order. Statuses and messages are the same, and every field
// that the fake sends has the captured type.
func TestFakeAnswersLikeRealCinder(t *testing.T) {
	server := cindertest.New()
	t.Cleanup(server.Close)
	names := map[string]string{"fast-1795151137": cindertest.TypePlain}
	replayed := 0
	for _, c := range readCaptures(t) {
		server.LetTimePass()
		status, answer := replay(t, server, c, names)
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
	if replayed < 30 {
		t.Errorf("only %d captures were found", replayed)
	}
}

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
func replay(t *testing.T, server *cindertest.Server, c captured, names map[string]string) (int, any) {
	t.Helper()
	path, body := c.Path, string(c.Body)
	for old, now := range names {
		path, body = strings.ReplaceAll(path, old, now), strings.ReplaceAll(body, old, now)
	}
	request, err := http.NewRequestWithContext(t.Context(), c.Method, server.Endpoint()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", "admin:00000000000000000000000000000001")
	if c.Microversion != "" {
		request.Header.Set("OpenStack-API-Version", "volume "+c.Microversion)
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
	if len(text) > 0 {
		if err := json.Unmarshal(text, &answer); err != nil {
			t.Fatalf("%s: %s", c.Name, text)
		}
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

// unlike returns how the fake's answer differs in form, or in a text that people read.
func unlike(was, now any, names map[string]string, path string) string {
	mine, ok := now.(map[string]any)
	theirs, both := was.(map[string]any)
	if ok != both {
		return fmt.Sprintf("%s is %v, captured %v", path, now, was)
	}
	for key, value := range mine {
		old, there := theirs[key]
		switch here := path + "." + key; {
		case !there && path != ".volume.metadata":
			return here + " is no field of Cinder's"
		case key == "message":
			text := fmt.Sprint(old)
			for from, to := range names {
				text = strings.ReplaceAll(text, from, to)
			}
			if text != value {
				return fmt.Sprintf("%s is %q, captured %q", here, value, text)
			}
		case value != nil && old != nil && reflect.TypeOf(value) != reflect.TypeOf(old):
			return fmt.Sprintf("%s is a %T, captured a %T", here, value, old)
		default:
			if diff := unlike(old, value, names, here); diff != "" && key != "metadata" {
				return diff
			}
		}
	}
	return ""
}
