package config_test

import (
	"maps"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

func TestKeepDeletedIsADuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "168h": 168 * time.Hour, "90m": 90 * time.Minute} {
		if keep, fault := config.KeepDeleted(map[string]string{"keep-deleted": text}); fault != nil || keep != want {
			t.Errorf("%q: %s, %v", text, keep, fault)
		}
	}
	for _, text := range []string{"", " ", "7d", "168", "-1h", "always"} {
		if _, fault := config.KeepDeleted(map[string]string{"keep-deleted": text}); fault == nil {
			t.Errorf("%q has no fault", text)
		}
	}
	for key, faulty := range map[string]bool{"keepDeleted": true, "Keep_Deleted": true, "keep": false} {
		if keep, fault := config.KeepDeleted(map[string]string{key: "168h"}); keep != 0 || (fault != nil) != faulty {
			t.Errorf("the key %s: %s, %v", key, keep, fault)
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
	with.Data["keep-deleted"] = "168h"
	if with.RevisionName() != without.RevisionName() {
		t.Error("it makes another revision")
	}
	stored, err := config.DecodeSource(with.Encode())
	if err != nil || stored.Data["keep-deleted"] != "168h" {
		t.Errorf("the revision has %v, %v", stored.Data, err)
	}
	if kept := config.OnlyLists(with.Data); !maps.Equal(kept, map[string]string{"keep-deleted": "168h"}) {
		t.Errorf("of data that are too large are kept %v", kept)
	}
}
