package run

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestGoldenJobThatLists(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"verbs": "provision,delete,list", "env-from-secret": "login"})
	job, err := listJob(Class{Name: "gold", Config: cfg, UID: "9d1f1c5e-5b0a-4a52-8b0e-3f6a1c2d4e5f"}, nil, Cluster{KubeAPI: "https://10.0.0.1:6443", UID: "c-1"})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "job-list", job)
}

func TestGoldenJobThatDeletesAnOrphan(t *testing.T) {
	left := contract.Listed{UID: fixture.UID, Volume: "5d1f0b6e-0b1c-4c8e-9a57-2d3e4f506071", Size: 1 << 30, Namespace: "app", Name: "data", ClusterUID: "c-1"}
	auditor := &Auditor{Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Cluster: Cluster{KubeAPI: "https://10.0.0.1:6443", UID: "c-1"}}
	job, err := auditor.deleteJob(Class{Name: "gold", Config: fixture.Config(t, "Delete", nil)}, left, nil, 3)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "job-delete", job)
}
