package skew_test

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// patch leads from one value of JSON to another: what is new or different there, by its JSON
// Pointer (RFC 6901), or null for a member that is not there any more.
type patch map[string]any

// escaper makes of a member's name a part of a pointer, and unescaper makes the name of that.
var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// lead adds what leads from one value to another, below a pointer. Neither value has nulls.
func (p patch) lead(from, to any, at string) {
	switch before := from.(type) {
	case map[string]any:
		if after, is := to.(map[string]any); is {
			p.leadMembers(before, after, at)
			return
		}
	case []any:
		if after, is := to.([]any); is && len(after) == len(before) {
			for i := range after {
				p.lead(before[i], after[i], at+"/"+strconv.Itoa(i))
			}
			return
		}
	}
	if !reflect.DeepEqual(from, to) {
		p[at] = to
	}
}

func (p patch) leadMembers(from, to map[string]any, at string) {
	for name := range from {
		if _, stays := to[name]; !stays {
			p[at+"/"+escaper.Replace(name)] = nil
		}
	}
	for name, value := range to {
		p.lead(from[name], value, at+"/"+escaper.Replace(name))
	}
}

// applied returns a value after the patch. The value is not changed.
func (p patch) applied(value any) any {
	for at, to := range p {
		value = replaced(value, strings.Split(at, "/")[1:], to)
	}
	return value
}

// replaced returns a value with another one at a path, or none there.
func replaced(value any, path []string, to any) any {
	if len(path) == 0 {
		return to
	}
	if list, is := value.([]any); is {
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(err)
		}
		out := slices.Clone(list)
		out[i] = replaced(list[i], path[1:], to)
		return out
	}
	out, name := maps.Clone(value.(map[string]any)), unescaper.Replace(path[0])
	if to == nil && len(path) == 1 {
		delete(out, name)
	} else {
		out[name] = replaced(out[name], path[1:], to)
	}
	return out
}

func TestAPatchLeadsFromOneObjectToAnother(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for name, test := range map[string]struct {
		from, to object
		want     patch
	}{
		"nothing changes":      {object{"a": "1", "b": []any{object{"c": "d"}}}, object{"a": "1", "b": []any{object{"c": "d"}}}, patch{}},
		"a text":               {object{"a": object{"b": "1", "c": "2"}}, object{"a": object{"b": "3", "c": "2"}}, patch{"/a/b": "3"}},
		"a member is new":      {object{"a": object{}}, object{"a": object{"b": object{"c": "1"}}}, patch{"/a/b": object{"c": "1"}}},
		"a member is gone":     {object{"a": object{"b": "1"}, "c": "2"}, object{"a": object{}}, patch{"/a/b": nil, "/c": nil}},
		"an item":              {object{"a": []any{"1", "2"}}, object{"a": []any{"1", "3"}}, patch{"/a/1": "3"}},
		"a member of an item":  {object{"a": []any{object{"b": "1"}}}, object{"a": []any{object{"c": "1"}}}, patch{"/a/0/b": nil, "/a/0/c": "1"}},
		"one item more":        {object{"a": []any{"1"}}, object{"a": []any{"2", "1"}}, patch{"/a": []any{"2", "1"}}},
		"a value's kind":       {object{"a": "1", "b": []any{}, "c": object{}}, object{"a": object{}, "b": "2", "c": []any{}}, patch{"/a": object{}, "/b": "2", "/c": []any{}}},
		"names of annotations": {object{"a.io/b": "1", "~1": "2"}, object{"a.io/b": "3", "~/": "2"}, patch{"/a.io~1b": "3", "/~01": nil, "/~0~1": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := patch{}
			got.lead(test.from, test.to, "")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the patch (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(any(test.to), got.applied(test.from)); diff != "" {
				t.Errorf("the object (-want +got):\n%s", diff)
			}
		})
	}
}
