package slots_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }

func flow(text string) slots.Flow {
	namespace, verb, named := strings.Cut(text, "/")
	if !named {
		verb = string(contract.Provision)
	}
	return slots.Flow{Namespace: namespace, Verb: contract.Verb(verb)}
}

// waiter parses "namespace[/verb] UID".
func waiter(text string, since int) slots.Waiter {
	where, uid, _ := strings.Cut(text, " ")
	return slots.Waiter{Flow: flow(where), UID: uid, Since: at(since), Limit: 5}
}

func chosen(waiters []slots.Waiter) string {
	var out []string
	for _, w := range waiters {
		out = append(out, w.UID)
	}
	return strings.Join(out, " ")
}

func TestNextSharesSlotsFairly(t *testing.T) {
	for name, test := range map[string]struct {
		waiting []string // in the order of their ages
		running map[string]int
		served  map[string]int
		free    int
		want    string
	}{
		"nobody waits":                   {free: 5},
		"nothing is free":                {waiting: []string{"a 1"}},
		"more run than the limit allows": {waiting: []string{"a 1"}, free: -2},
		"room for all":                   {waiting: []string{"a 1", "b 2"}, free: 5, want: "1 2"},
		"the oldest of one namespace":    {waiting: []string{"a 1", "a 2", "a 3"}, free: 2, want: "1 2"},
		"namespaces alternate": {
			waiting: []string{"a 1", "a 2", "a 3", "b 4", "b 5"}, free: 4, want: "1 4 2 5",
		},
		"the namespace that runs nothing comes first": {
			waiting: []string{"a 1", "a 2", "b 3"}, running: map[string]int{"a": 4}, free: 1, want: "3",
		},
		"a namespace that runs more waits until another has caught up": {
			waiting: []string{"a 1", "b 2", "b 3", "b 4"}, running: map[string]int{"a": 2}, free: 4, want: "2 3 1 4",
		},
		"of two that run nothing, the one that was never served": {
			waiting: []string{"a 1", "b 2"}, served: map[string]int{"a": 10}, free: 1, want: "2",
		},
		"of two that run nothing, the one that was served longest ago": {
			waiting: []string{"a 1", "b 2"}, served: map[string]int{"a": 11, "b": 10}, free: 1, want: "2",
		},
		"older deletes do not starve claims": {
			waiting: []string{"a/delete 1", "a/delete 2", "a/delete 3", "a 4"}, running: map[string]int{"a/delete": 2}, free: 2, want: "4 1",
		},
		"older claims do not starve deletes": {
			waiting: []string{"a 1", "a 2", "a 3", "a/delete 4"}, free: 2, want: "1 4",
		},
		"with one slot verbs alternate": {
			waiting: []string{"a 1", "a 2", "a/delete 3"}, served: map[string]int{"a": 10, "a/delete": 9}, free: 1, want: "3",
		},
		"two verbs give a namespace no more than another's one": {
			waiting: []string{"a/delete 1", "a/delete 2", "a 3", "a 4", "b 5", "b 6"}, free: 4, want: "1 5 3 6",
		},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &slots.Queue{}
			for i, text := range test.waiting {
				queue.Add(waiter(text, i))
			}
			load := slots.Load{Running: map[slots.Flow]int{}, Served: map[slots.Flow]time.Time{}}
			for text, n := range test.running {
				load.Running[flow(text)] = n
			}
			for text, minute := range test.served {
				load.Served[flow(text)] = at(minute)
			}
			if got := chosen(queue.Next(load, test.free, nil)); got != test.want {
				t.Errorf("chose %q, want %q", got, test.want)
			}
		})
	}
}

func TestWaitersStayInOrderAfterJoinAndLeave(t *testing.T) {
	queue := &slots.Queue{}
	for _, i := range []int{3, 1, 4, 0, 2} {
		queue.Add(waiter(fmt.Sprintf("a %d", i), i))
	}
	queue.Remove("1")
	queue.Remove("nobody")
	again := waiter("a 0", 9)
	queue.Add(again) // its retry is due later than all others
	if got := chosen(queue.Next(slots.Load{}, 10, nil)); got != "2 3 4 0" {
		t.Errorf("waiting are %q", got)
	}
	for uid := range strings.FieldsSeq("2 3 4 0") {
		queue.Remove(uid)
	}
	if queue.Len() != 0 || queue.Limit() != 0 {
		t.Errorf("%d wait after all have left, limit %d", queue.Len(), queue.Limit())
	}
}

func TestLimitIsTheHighestOfTheNextWaiters(t *testing.T) {
	queue := &slots.Queue{}
	for i, limit := range []int{2, 7, 30} {
		w := waiter(fmt.Sprintf("%c/delete %d", 'a'+i%2, i), i)
		w.Limit = limit
		queue.Add(w)
	}
	if got := queue.Limit(); got != 7 {
		t.Errorf("the limit is %d, want 7: the third is not the next of its flow", got)
	}
}

// Whatever the requests of each namespace and the number of slots: no namespace that waits has more
// than two Jobs fewer than another got meanwhile.
func TestNoNamespaceFallsBehind(t *testing.T) {
	for free := 1; free <= 7; free++ {
		queue, load := &slots.Queue{}, slots.Load{Running: map[slots.Flow]int{}, Served: map[slots.Flow]time.Time{}}
		asks := map[string]int{"a": 60, "b": 1, "c": 20, "d": 5}
		for ns, n := range asks {
			for i := range n {
				queue.Add(waiter(fmt.Sprintf("%s %s-%d", ns, ns, i), len(asks)*i))
			}
		}
		served := map[string]int{}
		var running []slots.Waiter
		for round := 0; queue.Len() > 0; round++ {
			for _, w := range queue.Next(load, free-load.Busy(), nil) {
				queue.Remove(w.UID)
				running = append(running, w)
				load.Running[w.Flow]++
				load.Served[w.Flow] = at(round)
				served[w.Namespace]++
			}
			for ns, n := range asks {
				most := slices.MaxFunc([]string{"a", "b", "c", "d"}, func(x, y string) int { return cmp.Compare(served[x], served[y]) })
				if served[ns] < n && served[most] > served[ns]+2 {
					t.Fatalf("%d slots, round %d: %s was served %d times, %s %d times", free, round, most, served[most], ns, served[ns])
				}
			}
			load.Running[running[0].Flow]-- // the oldest Job ends
			running = running[1:]
		}
	}
}

// grouped parses "group namespace UID" for each waiter, "-" for no group. One with "!" waits behind
// a Job that cannot start.
func grouped(texts ...string) *slots.Queue {
	queue := &slots.Queue{}
	for i, text := range texts {
		group, rest, _ := strings.Cut(text, " ")
		w := waiter(rest, i)
		w.Group, w.Behind = strings.Trim(group, "-!"), strings.HasSuffix(group, "!")
		queue.Add(w)
	}
	return queue
}

func TestTakeChoosesWaitersOfTheGroup(t *testing.T) {
	for name, test := range map[string]struct {
		waiting []string // "group namespace UID", "-" for no group
		running map[string]int
		group   string
		behind  bool
		most    int
		want    string
		left    int
	}{
		"nobody waits":               {group: "g", most: 3},
		"all of the group":           {waiting: []string{"g a 1", "g a 2"}, group: "g", most: 5, want: "1 2"},
		"as many as may":             {waiting: []string{"g a 1", "g a 2", "g a 3"}, group: "g", most: 2, want: "1 2", left: 1},
		"none is wanted":             {waiting: []string{"g a 1"}, group: "g", want: "", left: 1},
		"not those of another group": {waiting: []string{"h a 1", "g a 2", "- a 3", "g a 4"}, group: "g", most: 5, want: "2 4", left: 2},
		"none without a group":       {waiting: []string{"- a 1", "g a 2"}, group: "", most: 5, left: 2},
		"namespaces take turns":      {waiting: []string{"g a 1", "g a 2", "g a 3", "g b 4", "g c 5"}, group: "g", most: 4, want: "1 4 5 2", left: 1},
		"the one that runs nothing comes first": {
			waiting: []string{"g a 1", "g a 2", "g b 3"}, running: map[string]int{"a": 2}, group: "g", most: 2, want: "3 1", left: 1,
		},
		"not those behind a Job that cannot start": {waiting: []string{"g! a 1", "g a 2"}, group: "g", most: 5, want: "2", left: 1},
		"those as well where the first is of them": {waiting: []string{"g! a 1", "g a 2"}, group: "g", behind: true, most: 5, want: "1 2"},
	} {
		t.Run(name, func(t *testing.T) {
			queue := grouped(test.waiting...)
			load := slots.Load{Running: map[slots.Flow]int{}}
			for text, n := range test.running {
				load.Running[flow(text)] = n
			}
			got := queue.Take(test.group, test.behind, load, test.most)
			if chosen(got) != test.want || queue.Len() != test.left {
				t.Errorf("took %q and left %d, want %q and %d", chosen(got), queue.Len(), test.want, test.left)
			}
			for _, w := range got {
				if queue.Has(w.UID) {
					t.Errorf("%s still waits", w.UID)
				}
			}
		})
	}
}
