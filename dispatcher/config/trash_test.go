package config_test

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

func TestKeepDeletedIsADuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "168h": 168 * time.Hour, "90m": 90 * time.Minute} {
		if trash, fault := config.TrashOf(map[string]string{"keep-deleted": text}); fault != nil || trash.Keep != want {
			t.Errorf("%q: %v, %v", text, trash, fault)
		}
	}
	for _, text := range []string{"", " ", "7d", "168", "-1h", "always"} {
		if _, fault := config.TrashOf(map[string]string{"keep-deleted": text}); fault == nil {
			t.Errorf("%q has no fault", text)
		}
	}
	for key, faulty := range map[string]bool{"keepDeleted": true, "Keep_Deleted": true, "keep": false} {
		if trash, fault := config.TrashOf(map[string]string{key: "168h"}); trash.Keep != 0 || (fault != nil) != faulty {
			t.Errorf("the key %s: %v, %v", key, trash, fault)
		}
	}
}

// No value means that nothing is kept: whoever forgets the unit, or takes 0 for no limit, would lose
// everything that waits.
func TestKeepDeletedLimitIsAQuantityOfBytes(t *testing.T) {
	for text, want := range map[string]int64{"1Gi": 1 << 30, "2Gi": 2 << 30, "10G": 10e9, "100E": math.MaxInt64} {
		if trash, fault := config.TrashOf(map[string]string{"keep-deleted-limit": " " + text + "\n"}); fault != nil || trash.Limit != want {
			t.Errorf("%q: %v, %v", text, trash, fault)
		}
	}
	for _, text := range []string{"", " ", "0", "500", "1023Mi", "1G", "100m", "-1Gi", "1 Gi", "10GB", "1e1000", "none"} {
		if _, fault := config.TrashOf(map[string]string{"keep-deleted": "1h", "keep-deleted-limit": text}); fault == nil {
			t.Errorf("%q has no fault", text)
		}
	}
	for key, faulty := range map[string]bool{"keepDeletedLimit": true, "keep-deleted-limits": true, "limit": false} {
		if trash, fault := config.TrashOf(map[string]string{key: "1Gi"}); trash.Limit != 0 || (fault != nil) != faulty {
			t.Errorf("the key %s: %v, %v", key, trash, fault)
		}
	}
}

func TestOfTwoConfigsTheOneThatKeepsMoreCounts(t *testing.T) {
	for _, test := range []struct{ a, b, want config.Trash }{
		{config.Trash{Keep: 1, Limit: 5}, config.Trash{Keep: 2, Limit: 3}, config.Trash{Keep: 2, Limit: 5}},
		{config.Trash{Keep: 1, Limit: 5}, config.Trash{}, config.Trash{Keep: 1}},
	} {
		if got, swapped := test.a.Or(test.b), test.b.Or(test.a); got != test.want || swapped != test.want {
			t.Errorf("%v and %v: %v, %v", test.a, test.b, got, swapped)
		}
	}
}

// A revision has the value for the time after its ConfigMap, and its name does not say it: else each
// edit would be another revision.
func TestKeepDeletedMakesNoRevision(t *testing.T) {
	data := map[string]string{"image": "x"}
	without := config.Source{Namespace: "flex-provisioner", Name: "gold", Data: data}
	with := without
	with.Data = maps.Clone(data)
	with.Data["keep-deleted"], with.Data["keep-deleted-limit"] = "168h", "1Gi"
	if with.RevisionName() != without.RevisionName() {
		t.Error("it makes another revision")
	}
	stored, err := config.DecodeSource(with.Encode())
	if err != nil || stored.Data["keep-deleted"] != "168h" || stored.Data["keep-deleted-limit"] != "1Gi" {
		t.Errorf("the revision has %v, %v", stored.Data, err)
	}
	if kept := config.OnlyLists(with.Data); !maps.Equal(kept, map[string]string{"keep-deleted": "168h", "keep-deleted-limit": "1Gi"}) {
		t.Errorf("of data that are too large are kept %v", kept)
	}
}
