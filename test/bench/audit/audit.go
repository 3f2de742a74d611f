package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Count is how often an actor asked for something.
type Count struct {
	Actor    string `json:"actor"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	// N is how many requests there were, and Conflicts how many of them were answered 409.
	N         int `json:"n"`
	Conflicts int `json:"conflicts,omitempty"`
}

// IsRead reports whether the requests change nothing.
func (c Count) IsRead() bool { return c.Verb == "get" || c.Verb == "list" }

// IsEvent reports whether the requests write events.
func (c Count) IsEvent() bool { return c.Resource == "events" }

// IsWrite reports whether the requests write anything but events.
func (c Count) IsWrite() bool { return !c.IsRead() && !c.IsEvent() }

// Counts are the requests of a time.
type Counts map[key]*Count

type key struct{ actor, verb, resource string }

// Sorted returns the counts, by actor, the most frequent first.
func (c Counts) Sorted() []Count {
	var out []Count
	for _, one := range c {
		out = append(out, *one)
	}
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Actor, b.Actor), cmp.Compare(b.N, a.N), cmp.Compare(a.Verb+a.Resource, b.Verb+b.Resource))
	})
	return out
}

// record is a line of the log.
type record struct {
	Stage  string `json:"stage"`
	Verb   string `json:"verb"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	User struct {
		Name string `json:"username"`
	} `json:"user"`
	Answer struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	At time.Time `json:"requestReceivedTimestamp"`
}

// isApart reports whether a request is not counted: watches, which last, and leases, which do not
// depend on the claims.
func (r record) isApart() bool {
	return r.Verb == "watch" || r.Object.Resource == "leases" || r.Object.Resource == ""
}

func (r record) resource() string {
	if r.Object.Subresource == "" {
		return r.Object.Resource
	}
	return r.Object.Resource + "/" + r.Object.Subresource
}

// Read adds the requests of a log that were received in a time. The last line may be half written.
func (c Counts) Read(log io.Reader, from, to time.Time) error {
	lines := bufio.NewReaderSize(log, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		if err := c.add(bytes.TrimSpace(line), from, to); err != nil {
			return err
		}
	}
}

func (c Counts) add(line []byte, from, to time.Time) error {
	if len(line) == 0 {
		return nil
	}
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return fmt.Errorf("a line of the audit log: %w", err)
	}
	if r.At.Before(from) || !r.At.Before(to) || r.isApart() {
		return nil
	}
	k := key{Actor(r.User.Name), r.Verb, r.resource()}
	if c[k] == nil {
		c[k] = &Count{Actor: k.actor, Verb: k.verb, Resource: k.resource}
	}
	c[k].N++
	if r.Answer.Code == http.StatusConflict {
		c[k].Conflicts++
	}
	return nil
}

// Actor returns the short name of a user: that of its ServiceAccount, or of its component.
func Actor(user string) string {
	switch {
	case user == "system:serviceaccount:kube-system:persistent-volume-binder":
		return "binder"
	case strings.HasPrefix(user, "system:serviceaccount:"):
		return user[strings.LastIndex(user, ":")+1:]
	default:
		return strings.TrimPrefix(user, "system:")
	}
}
