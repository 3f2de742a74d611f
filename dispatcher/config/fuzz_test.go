package config_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// A config is the same, faults and all, when it is read back from its revision; one without faults
// has limits that make sense; and none costs much memory.
func FuzzConfig(f *testing.F) {
	f.Add("image: localhost/gold:v1\nservice-account-name: gold\nverbs: provision, delete\nbatch-size: '64'\nmax-parallel: '4'\ntimeout: 90s\n")
	f.Add("image: x\nservice-account-name: gold\nnode-selector: zone=west, storage=\nrequest-keys: tier, example.com/Replicas\ndata-sources: PersistentVolumeClaim\n")
	f.Add("image: x\nservice-account-name: gold\ntimeout: 9223372036s\nmax-attempts: '-1'\nbatch-size: '1e3'\npod-template: '[]'\n")
	f.Add("image: x\nservice-account-name: gold\npod-template: 'spec: {hostname: &a x, containers: [{name: x, args: [*a, *a, [[[[]]]]]}]}'\n")
	f.Fuzz(func(t *testing.T, text string) {
		var data map[string]string
		if yaml.Unmarshal([]byte(text), &data) != nil {
			return // the API server stores texts only
		}
		src := source(func(s *config.Source) { s.Data = data })
		var cfg config.Config
		var faults field.ErrorList
		if bytes := allocated(func() { cfg, faults = config.Parse(src, config.Dispatcher{Provisioner: contract.ProvisionerName}) }); bytes > mostAllocated {
			t.Errorf("%d MiB are allocated for %d KiB of data", bytes>>20, config.DataSize(data)>>10)
		}
		stored, err := config.DecodeSource(src.Encode())
		if err != nil {
			t.Fatal(err)
		}
		again, same := config.Parse(stored, config.Dispatcher{Provisioner: contract.ProvisionerName})
		if !reflect.DeepEqual(faults, same) || len(faults) == 0 && !reflect.DeepEqual(cfg, again) {
			t.Errorf("%q is read back as something else:\n%+v, %v\n%+v, %v", text, cfg, faults, again, same)
		}
		if len(faults) == 0 && (cfg.Timeout <= 0 || cfg.MaxParallel < 1 || cfg.BatchSize < 1 || cfg.BatchSize > contract.MaxBatch || cfg.MaxAttempts < 0 || len(cfg.Verbs) == 0) {
			t.Errorf("%q is accepted as %+v", text, cfg)
		}
	})
}
